//! The sources of a stream by their number, and damage that has none.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use super::{Ctx, Framing, Place, Protocol, Read, Source, State};
use crate::{Blocks, Consumer, Image, Reason};

/// Bytes that were no message, and where that was first noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stray {
    reason: Reason,
    at: u64,
    bytes: u64,
}

/// The sources of a stream and what they share.
#[derive(Debug)]
pub struct Sources<'a, P: Protocol> {
    settings: P::Settings,
    blocks: Blocks<'a>,
    /// By number, grown as they appear.
    all: Vec<Option<Box<P::Source>>>,
    /// Bytes outside any message before the first source appeared.
    pub(super) stray: Option<Stray>,
}

impl<'a, P: Protocol> Sources<'a, P> {
    pub(super) fn new(settings: P::Settings, image: &'a Image) -> Sources<'a, P> {
        Sources {
            blocks: Blocks::new(image, P::rules(&settings)),
            settings,
            all: Vec::new(),
            stray: None,
        }
    }

    pub(super) fn image(&self) -> &'a Image {
        self.blocks.image()
    }

    /// What all sources share.
    #[must_use]
    #[inline]
    pub fn settings(&self) -> &P::Settings {
        &self.settings
    }

    /// Other settings from here on. Where they read the code by other rules, the
    /// walks go on at the same addresses.
    pub fn set_settings(&mut self, settings: P::Settings) {
        self.change_settings(|own| *own = settings);
    }

    /// The same where they are changed in place.
    pub fn change_settings(&mut self, change: impl FnOnce(&mut P::Settings)) {
        let before = P::rules(&self.settings);
        change(&mut self.settings);
        let rules = P::rules(&self.settings);
        if rules != before {
            let mut blocks = Blocks::new(self.image(), rules);
            for source in self.all.iter_mut().flatten() {
                let state = source.state(&self.blocks);
                source.set_state(&state, &mut blocks);
            }
            self.blocks = blocks;
        }
    }

    /// The source of this number, if it has sent anything.
    pub fn get(&mut self, number: u16) -> Option<&mut P::Source> {
        self.all.get_mut(usize::from(number))?.as_deref_mut()
    }

    /// The same with what all sources share.
    pub fn with_settings(&mut self, number: u16) -> Option<(&mut P::Source, &P::Settings)> {
        let source = self.all.get_mut(usize::from(number))?.as_deref_mut()?;
        Some((source, &self.settings))
    }

    /// The same with the code.
    #[inline]
    pub fn with_blocks(
        &mut self,
        number: u16,
    ) -> Option<(&mut P::Source, &mut Blocks<'a>, &P::Settings)> {
        let source = self.all.get_mut(usize::from(number))?.as_deref_mut()?;
        Some((source, &mut self.blocks, &self.settings))
    }

    /// `Break` if a consumer asked for a pause.
    #[inline]
    pub fn take_pause(&mut self) -> ControlFlow<()> {
        for source in self.all.iter_mut().flatten() {
            source.track().take_pause()?;
        }
        ControlFlow::Continue(())
    }

    /// A message of this source. The source is lost if it does not fit; `Break`
    /// if the consumer asked for a pause.
    #[inline(always)]
    pub fn message<C: Consumer>(
        &mut self,
        number: u16,
        message: &P::Message<'_>,
        place: Place,
        out: &mut C,
    ) -> ControlFlow<()> {
        let index = usize::from(number);
        if !matches!(self.all.get(index), Some(Some(_))) {
            self.add(number);
        }
        let Some(Some(source)) = self.all.get_mut(index) else {
            return ControlFlow::Continue(());
        };
        let mut cx = Ctx {
            settings: &self.settings,
            blocks: &mut self.blocks,
            out,
            place,
        };
        if let Err(reason) = source.message(message, &mut cx) {
            source.lose(reason, place.at, place.len);
        }
        if source.track().walk.is_alert() {
            let placed = source.is_placed(message);
            source.track().tell_doubt(placed, out);
        }
        source.track().take_pause()
    }

    /// A source appears.
    #[cold]
    fn add(&mut self, number: u16) {
        let index = usize::from(number);
        if self.all.len() <= index {
            self.all.resize_with(index + 1, || None);
        }
        let mut source = Box::new(P::Source::new(&self.settings, number));
        if let Some(stray) = self.stray.take() {
            source.lose(stray.reason, stray.at, stray.bytes);
        }
        if let Some(place) = self.all.get_mut(index) {
            *place = Some(source);
        }
    }

    fn entry(&mut self, number: u16) -> Option<&mut P::Source> {
        if self.get(number).is_none() {
            self.add(number);
        }
        self.get(number)
    }

    /// One piece of the stream.
    #[inline]
    pub(super) fn piece<C: Consumer>(
        &mut self,
        at: u64,
        piece: <P::Framer as Framing>::Piece<'_>,
        out: &mut C,
    ) -> ControlFlow<()> {
        let len = P::Framer::length(&piece) as u64;
        let place = Place { at, len };
        match P::read(&self.settings, &piece) {
            Read::Message(number, message) => P::message(self, number, &message, place, out),
            Read::Damage(number, reason) => {
                self.damage(number, reason, place);
                ControlFlow::Continue(())
            }
            Read::Nothing => ControlFlow::Continue(()),
        }
    }

    /// Bytes that are no message. Where their source is not known, they may have
    /// been a message of any.
    #[cold]
    fn damage(&mut self, number: Option<u16>, reason: Reason, Place { at, len }: Place) {
        if let Some(source) = number.and_then(|number| self.entry(number)) {
            return source.lose(reason, at, len);
        }
        let mut any = false;
        for source in self.all.iter_mut().flatten() {
            source.lose(reason, at, len);
            any = true;
        }
        if !any {
            let bytes = 0;
            let stray = self.stray.get_or_insert(Stray { reason, at, bytes });
            stray.bytes += len;
        }
    }

    /// The stream ends at this offset.
    pub(super) fn finish<C: Consumer>(&mut self, at: u64, out: &mut C) {
        // Nothing was ever synchronised: the source of number 0 stands in.
        let absent = self.stray.is_some();
        if absent {
            self.add(0);
        }
        let mut cx = Ctx {
            settings: &self.settings,
            blocks: &mut self.blocks,
            out,
            place: Place { at, len: 0 },
        };
        for source in self.all.iter_mut().flatten() {
            source.finish(&mut cx);
            source.track().finish(cx.out);
        }
        if absent {
            self.all.clear();
        }
    }

    pub(super) fn states(&self) -> Vec<Option<State<P>>> {
        let state = |source: &Option<Box<P::Source>>| Some(source.as_ref()?.state(&self.blocks));
        self.all.iter().map(state).collect()
    }

    pub(super) fn set_states(&mut self, states: &[Option<State<P>>]) {
        self.all.clear();
        for (state, number) in states.iter().zip(0..) {
            let source = state.as_ref().map(|state| {
                let mut source = P::Source::new(&self.settings, number);
                source.set_state(state, &mut self.blocks);
                Box::new(source)
            });
            self.all.push(source);
        }
    }

    /// Forgets everything but the code.
    pub(super) fn restart(&mut self, settings: P::Settings) {
        self.stray = None;
        self.all.clear();
        self.set_settings(settings);
    }

    /// Decoding goes on at an earlier moment.
    pub(super) fn forget_shortcuts(&mut self) {
        self.blocks.forget_shortcuts();
    }

    /// Whether ways were kept since this was last asked.
    pub(super) fn has_kept_ways(&mut self) -> bool {
        self.blocks.has_kept_ways()
    }

    pub(super) fn is_synchronised(&self) -> bool {
        let mut known = self.all.iter().flatten().peekable();
        known.peek().is_some() && known.all(|source| source.is_anchored())
    }

    pub(super) fn hint(&mut self, states: &[Option<State<P>>]) {
        for (state, number) in states.iter().zip(0..) {
            if let Some(state) = state
                && let Some(source) = self.entry(number)
            {
                source.hint(state);
            }
        }
    }
}
