//! Serializes a value. Objects within objects are frames of a stack of its own, so that depth costs heap and never
//! native stack.

use std::collections::HashMap;
use std::vec::IntoIter;

use rquickjs::object::Filter;
use rquickjs::{
    Array, Atom, Error, Exception, Function, Object, Result, String as JsString, Type, TypedArray, Value,
};

use super::kit::{self, Kit};
use super::tags;
use super::wire::Output;
use super::{CLONE_DEPTH_MAX, CLONE_LEN_MAX, data_clone_error};
use crate::buffers;

/// What is being written, from the outermost object to the innermost.
enum Frame<'js> {
    Properties { object: Object<'js>, keys: IntoIter<Atom<'js>>, written: u32, end: End },
    Elements { array: Array<'js>, next: usize, len: usize, named: Vec<Atom<'js>> },
    Values { values: IntoIter<Value<'js>>, end: u8, len: usize },
    Error { stack: Option<String> },
}

/// How a list of properties ends.
#[derive(Clone, Copy)]
enum End {
    Object,
    Sparse { len: usize },
    Dense { len: usize },
}

/// One serialization.
pub(super) struct Writer<'js> {
    kit: Kit<'js>,
    output: Output,
    ids: HashMap<Value<'js>, u32>,
    frames: Vec<Frame<'js>>,
    moved: Vec<Value<'js>>,
    refer: Option<Function<'js>>,
}

impl<'js> Writer<'js> {
    /// `moved`: buffers of which only the place in this list is written.
    pub(super) fn new(kit: Kit<'js>, moved: Vec<Value<'js>>) -> Self {
        Self { kit, output: Output::new(), ids: HashMap::new(), frames: Vec::new(), moved, refer: None }
    }

    /// Asks `refer` what goes as a number.
    pub(super) fn referring(self, refer: Function<'js>) -> Self {
        Self { refer: Some(refer), ..self }
    }

    /// # Errors
    /// As [`super::serialize`].
    pub(super) fn run(mut self, value: &Value<'js>) -> Result<Vec<u8>> {
        self.value(value)?;
        while let Some(frame) = self.frames.pop() {
            self.step(frame)?;
        }
        Ok(self.output.bytes)
    }

    /// Writes the next value of a frame, or its end.
    fn step(&mut self, frame: Frame<'js>) -> Result<()> {
        match frame {
            Frame::Properties { object, mut keys, written, end } => match keys.next() {
                Some(key) => {
                    self.key(&key)?;
                    let value = object.get::<_, Value<'js>>(key)?;
                    self.push(Frame::Properties { object, keys, written: written + 1, end })?;
                    self.value(&value)
                }
                None => {
                    self.end_properties(end, written);
                    Ok(())
                }
            },
            Frame::Elements { array, next, len, named } => {
                if next == len {
                    let object = array.into_object();
                    return self.push(Frame::Properties {
                        object,
                        keys: named.into_iter(),
                        written: 0,
                        end: End::Dense { len },
                    });
                }
                let value = array.get::<Value<'js>>(next)?;
                self.push(Frame::Elements { array, next: next + 1, len, named })?;
                self.value(&value)
            }
            Frame::Values { mut values, end, len } => match values.next() {
                Some(value) => {
                    self.push(Frame::Values { values, end, len })?;
                    self.value(&value)
                }
                None => {
                    self.output.tag(end);
                    self.output.len(len);
                    Ok(())
                }
            },
            Frame::Error { stack } => {
                self.end_error(stack.as_deref());
                Ok(())
            }
        }
    }

    fn push(&mut self, frame: Frame<'js>) -> Result<()> {
        if self.frames.len() >= CLONE_DEPTH_MAX {
            let message = format!("The value has more than {CLONE_DEPTH_MAX} objects within one another.");
            return Err(data_clone_error(&self.kit.ctx, &message));
        }
        self.frames.push(frame);
        Ok(())
    }

    fn end_properties(&mut self, end: End, written: u32) {
        match end {
            End::Object => {
                self.output.tag(tags::END_OBJECT);
                self.output.varint(written);
            }
            End::Sparse { len } => {
                self.output.tag(tags::END_SPARSE_ARRAY);
                self.output.varint(written);
                self.output.len(len);
            }
            End::Dense { len } => {
                self.output.tag(tags::END_DENSE_ARRAY);
                self.output.varint(written);
                self.output.len(len);
            }
        }
    }

    fn end_error(&mut self, stack: Option<&str>) {
        if let Some(stack) = stack {
            self.output.tag(tags::ERROR_STACK);
            self.output.text(stack);
        }
        self.output.tag(tags::ERROR_END);
    }

    /// Element indices are numbers, all other keys strings.
    fn key(&mut self, key: &Atom<'js>) -> Result<()> {
        let text = match key.to_string() {
            Ok(text) => text,
            Err(Error::Utf8(_)) => return self.text(&key.to_js_string()?),
            Err(error) => return Err(error),
        };
        match element_index(&text) {
            Some(index) => self.number(f64::from(index)),
            None => self.output.text(&text),
        }
        Ok(())
    }

    fn number(&mut self, number: f64) {
        let int = number as i32;
        if f64::from(int).to_bits() == number.to_bits() {
            self.output.int(int);
        } else {
            self.output.tag(tags::DOUBLE);
            self.output.double(number);
        }
    }

    fn text(&mut self, text: &JsString<'js>) -> Result<()> {
        match text.to_string() {
            Ok(valid) => {
                self.check_room(valid.len() * 2)?;
                self.output.text(&valid);
                Ok(())
            }
            // Surrogates without a partner: the engine's UTF-8 cannot show them.
            Err(Error::Utf8(_)) => {
                let bytes: TypedArray<'js, u8> = self.kit.call("units", (text.clone(),))?;
                let bytes = buffers::read(&bytes);
                self.check_room(bytes.len())?;
                let units: Vec<u16> =
                    bytes.chunks_exact(2).map(|pair| u16::from_ne_bytes([pair[0], pair[1]])).collect();
                self.output.units(&units);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn check_room(&self, more: usize) -> Result<()> {
        if self.output.bytes.len().saturating_add(more) > CLONE_LEN_MAX {
            let message = format!("The value is larger than {CLONE_LEN_MAX} bytes when it is serialized.");
            return Err(data_clone_error(&self.kit.ctx, &message));
        }
        Ok(())
    }

    fn value(&mut self, value: &Value<'js>) -> Result<()> {
        self.check_room(0)?;
        match value.type_of() {
            Type::Undefined | Type::Uninitialized => self.output.tag(tags::UNDEFINED),
            Type::Null => self.output.tag(tags::NULL),
            Type::Bool => {
                self.output.tag(if value.as_bool() == Some(true) { tags::TRUE } else { tags::FALSE });
            }
            Type::Int | Type::Float => self.number(value.as_number().expect("it is a number")),
            Type::String => return self.text(value.as_string().expect("it is a string")),
            Type::BigInt => {
                self.output.tag(tags::BIG_INT);
                return self.big_int(value);
            }
            Type::Symbol => return self.refuse(value),
            Type::Function | Type::Constructor | Type::Proxy => return self.callable(value),
            _ => match value.as_object() {
                Some(object) => return self.object(object),
                None => return self.refuse(value),
            },
        }
        Ok(())
    }

    fn refuse(&self, value: &Value<'js>) -> Result<()> {
        self.kit.call("refuse", (value.clone(),))
    }

    /// What is never cloned, and may go as a number.
    fn callable(&mut self, value: &Value<'js>) -> Result<()> {
        let Some(object) = value.as_object() else { return self.refuse(value) };
        if self.ids.contains_key(value) {
            self.is_known(object);
            return Ok(());
        }
        if self.goes_as_number(object)? { Ok(()) } else { self.refuse(value) }
    }

    /// Writes the number that stands for an object, where it has one.
    fn goes_as_number(&mut self, object: &Object<'js>) -> Result<bool> {
        let Some(refer) = &self.refer else { return Ok(false) };
        let Some(number) = refer.call::<_, Option<u32>>((object.clone(),))? else { return Ok(false) };
        self.assign(object);
        self.output.tag(tags::HOST_OBJECT);
        self.output.varint(tags::HOST_REFERENCE);
        self.output.varint(number);
        Ok(true)
    }

    fn big_int(&mut self, value: &Value<'js>) -> Result<()> {
        let is_negative: bool = self.kit.call("bigIntIsNegative", (value.clone(),))?;
        let hex: String = self.kit.call("bigIntHex", (value.clone(),))?;
        self.check_room(hex.len())?;
        self.output.big_int(is_negative, &hex);
        Ok(())
    }

    /// Gives `object` its id, or writes the one that it has.
    fn is_known(&mut self, object: &Object<'js>) -> bool {
        if let Some(id) = self.ids.get(object.as_value()) {
            self.output.tag(tags::OBJECT_REFERENCE);
            self.output.varint(*id);
            return true;
        }
        self.assign(object);
        false
    }

    fn assign(&mut self, object: &Object<'js>) {
        let id = u32::try_from(self.ids.len()).expect("CLONE_LEN_MAX bounds the objects");
        self.ids.insert(object.as_value().clone(), id);
    }

    fn object(&mut self, object: &Object<'js>) -> Result<()> {
        if let Some(array) = object.as_array() {
            return if self.is_known(object) { Ok(()) } else { self.array(array) };
        }
        if self.kit.is_literal(object) {
            return if self.is_known(object) { Ok(()) } else { self.properties(object) };
        }
        // A view's buffer comes before it, and has the smaller id.
        if self.ids.contains_key(object.as_value()) {
            self.is_known(object);
            return Ok(());
        }
        if self.goes_as_number(object)? {
            return Ok(());
        }
        let inspected: Option<Array<'js>> = self.kit.call("inspect", (object.clone(),))?;
        let Some(inspected) = inspected else {
            self.assign(object);
            return self.properties(object);
        };
        let kind: i32 = inspected.get(0)?;
        if kind == kit::VIEW {
            return self.view(object, &inspected);
        }
        self.assign(object);
        self.built_in(object, kind, &inspected)
    }

    fn properties(&mut self, object: &Object<'js>) -> Result<()> {
        self.output.tag(tags::BEGIN_OBJECT);
        let keys = keys(object)?.into_iter();
        self.push(Frame::Properties { object: object.clone(), keys, written: 0, end: End::Object })
    }

    fn array(&mut self, array: &Array<'js>) -> Result<()> {
        let len = array.len();
        let keys = keys(array.as_object())?;
        let is_dense = keys.len() >= len
            && keys[..len].iter().enumerate().all(|(index, key)| {
                key.to_string().is_ok_and(|key| element_index(&key) == u32::try_from(index).ok())
            });
        if is_dense {
            self.output.tag(tags::BEGIN_DENSE_ARRAY);
            self.output.len(len);
            let named = keys[len..].to_vec();
            return self.push(Frame::Elements { array: array.clone(), next: 0, len, named });
        }
        self.output.tag(tags::BEGIN_SPARSE_ARRAY);
        self.output.len(len);
        let object = array.as_object().clone();
        self.push(Frame::Properties { object, keys: keys.into_iter(), written: 0, end: End::Sparse { len } })
    }

    fn built_in(&mut self, object: &Object<'js>, kind: i32, inspected: &Array<'js>) -> Result<()> {
        match kind {
            kit::DATE => {
                self.output.tag(tags::DATE);
                self.output.double(inspected.get(1)?);
                Ok(())
            }
            kit::REG_EXP => {
                self.output.tag(tags::REG_EXP);
                self.text(&inspected.get(1)?)?;
                self.output.varint(inspected.get(2)?);
                Ok(())
            }
            kit::MAP => self.values(tags::BEGIN_MAP, tags::END_MAP, inspected),
            kit::SET => self.values(tags::BEGIN_SET, tags::END_SET, inspected),
            kit::BOXED => self.boxed(&inspected.get(1)?),
            kit::ARRAY_BUFFER => self.array_buffer(object, inspected),
            kit::ERROR => self.error(inspected),
            kit::DOM_EXCEPTION => {
                self.output.tag(tags::HOST_OBJECT);
                self.output.varint(tags::HOST_DOM_EXCEPTION);
                for index in 1..=3 {
                    self.text(&inspected.get(index)?)?;
                }
                Ok(())
            }
            _ => Err(Exception::throw_internal(&self.kit.ctx, &format!("there is no kind {kind} of object"))),
        }
    }

    fn values(&mut self, begin: u8, end: u8, inspected: &Array<'js>) -> Result<()> {
        let values: Vec<Value<'js>> = inspected.get(1)?;
        self.output.tag(begin);
        let len = values.len();
        self.push(Frame::Values { values: values.into_iter(), end, len })
    }

    fn boxed(&mut self, value: &Value<'js>) -> Result<()> {
        match value.type_of() {
            Type::Bool => {
                let is_true = value.as_bool() == Some(true);
                self.output.tag(if is_true { tags::TRUE_OBJECT } else { tags::FALSE_OBJECT });
                Ok(())
            }
            Type::Int | Type::Float => {
                self.output.tag(tags::NUMBER_OBJECT);
                self.output.double(value.as_number().expect("it is a number"));
                Ok(())
            }
            Type::BigInt => {
                self.output.tag(tags::BIG_INT_OBJECT);
                self.big_int(value)
            }
            _ => {
                self.output.tag(tags::STRING_OBJECT);
                self.text(value.as_string().expect("no other primitive is boxed"))
            }
        }
    }

    fn array_buffer(&mut self, object: &Object<'js>, inspected: &Array<'js>) -> Result<()> {
        if let Some(place) = self.moved.iter().position(|moved| moved == object.as_value()) {
            self.output.tag(tags::ARRAY_BUFFER_TRANSFER);
            self.output.len(place);
            return Ok(());
        }
        let bytes: TypedArray<'js, u8> = inspected.get(1)?;
        let largest: i64 = inspected.get::<f64>(2)? as i64;
        self.check_room(bytes.len())?;
        let bytes = buffers::read(&bytes);
        let largest = usize::try_from(largest).ok();
        self.output.tag(if largest.is_some() { tags::RESIZABLE_ARRAY_BUFFER } else { tags::ARRAY_BUFFER });
        self.output.len(bytes.len());
        if let Some(largest) = largest {
            self.output.len(largest.min(CLONE_LEN_MAX).max(bytes.len()));
        }
        self.output.raw(&bytes);
        Ok(())
    }

    fn view(&mut self, view: &Object<'js>, inspected: &Array<'js>) -> Result<()> {
        let buffer: Object<'js> = inspected.get(2)?;
        self.object(&buffer)?;
        self.assign(view);
        self.output.tag(tags::ARRAY_BUFFER_VIEW);
        self.output.tag(inspected.get(1)?);
        for index in 3..=5 {
            self.output.varint(inspected.get(index)?);
        }
        Ok(())
    }

    fn error(&mut self, inspected: &Array<'js>) -> Result<()> {
        self.output.tag(tags::ERROR);
        let prototype: u8 = inspected.get(1)?;
        if prototype != 0 {
            self.output.tag(prototype);
        }
        if inspected.get(2)? {
            self.output.tag(tags::ERROR_MESSAGE);
            self.text(&inspected.get(3)?)?;
        }
        let stack: Option<String> = inspected.get(6)?;
        if !inspected.get::<bool>(4)? {
            self.end_error(stack.as_deref());
            return Ok(());
        }
        self.output.tag(tags::ERROR_CAUSE);
        let cause: Value<'js> = inspected.get(5)?;
        self.push(Frame::Error { stack })?;
        self.value(&cause)
    }
}

/// The enumerable own keys that are strings, in the order of the language: element indices first.
fn keys<'js>(object: &Object<'js>) -> Result<Vec<Atom<'js>>> {
    object.own_keys(Filter::new().string().enum_only()).collect()
}

/// The number that `key` is as an index of elements.
fn element_index(key: &str) -> Option<u32> {
    let is_canonical = match key.as_bytes() {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.len() < 10 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !is_canonical {
        return None;
    }
    key.parse().ok().filter(|index| *index != u32::MAX)
}
