//! Deserializes a value. As in the writer, objects within objects are frames of a stack of its own. Every length is
//! checked against the bytes that are left before anything is made of it.

use rquickjs::object::Property;
use rquickjs::{
    Array, ArrayBuffer, Atom, Error, Function, IntoJs, Object, Result, String as JsString, TypedArray, Value,
};

use super::kit::Kit;
use super::tags;
use super::wire::{Input, Malformed, Text};
use super::{CLONE_DEPTH_MAX, CLONE_LEN_MAX, data_clone_error};
use crate::plain;

/// What is being read, from the outermost object to the innermost.
enum Frame<'js> {
    Properties {
        object: Object<'js>,
        key: Option<Atom<'js>>,
        read: u32,
        end: u8,
    },
    Elements {
        array: Array<'js>,
        next: u32,
        len: u32,
    },
    Map {
        map: Object<'js>,
        flat: Vec<Value<'js>>,
    },
    Set {
        set: Object<'js>,
        values: Vec<Value<'js>>,
    },
    /// Waits for its cause.
    Error {
        error: Object<'js>,
    },
}

/// Why reading stopped.
enum Stop {
    Malformed(Malformed),
    Thrown(Error),
}

impl From<Malformed> for Stop {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Thrown(error)
    }
}

type Step<T> = std::result::Result<T, Stop>;

/// One deserialization.
pub(super) struct Reader<'a, 'js> {
    kit: Kit<'js>,
    input: Input<'a>,
    version: u32,
    /// By id.
    objects: Vec<Value<'js>>,
    frames: Vec<Frame<'js>>,
    moved: Vec<Value<'js>>,
    resolve: Option<Function<'js>>,
}

impl<'a, 'js> Reader<'a, 'js> {
    /// `moved`: the buffers that the value names by their place.
    pub(super) fn new(kit: Kit<'js>, bytes: &'a [u8], moved: Vec<Value<'js>>) -> Self {
        Self {
            kit,
            input: Input::new(bytes),
            version: 0,
            objects: Vec::new(),
            frames: Vec::new(),
            moved,
            resolve: None,
        }
    }

    /// Asks `resolve` what numbers stand for.
    pub(super) fn resolving(self, resolve: Function<'js>) -> Self {
        Self { resolve: Some(resolve), ..self }
    }

    /// # Errors
    /// As [`super::deserialize`].
    pub(super) fn run(mut self) -> Result<Value<'js>> {
        let ctx = self.kit.ctx.clone();
        match self.read() {
            Ok(value) => Ok(value),
            Err(Stop::Malformed(malformed)) => Err(data_clone_error(&ctx, &malformed.to_string())),
            Err(Stop::Thrown(error)) => Err(self.thrown(error)),
        }
    }

    /// What a built-in function throws for bytes that are wrong (a pattern, a length) is a fault of the bytes.
    fn thrown(&self, error: Error) -> Error {
        if !error.is_exception() {
            return data_clone_error(&self.kit.ctx, &self.input.malformed().to_string());
        }
        let caught = self.kit.ctx.catch();
        let name = caught.as_object().and_then(|object| object.get::<_, String>("name").ok());
        if matches!(name.as_deref(), Some("SyntaxError" | "RangeError" | "TypeError")) {
            return data_clone_error(&self.kit.ctx, &self.input.malformed().to_string());
        }
        self.kit.ctx.throw(caught)
    }

    fn read(&mut self) -> Step<Value<'js>> {
        self.version()?;
        let mut value = self.begin()?;
        loop {
            match (value, self.frames.pop()) {
                (Some(root), None) => return Ok(root),
                (done, Some(frame)) => value = self.step(frame, done)?,
                (None, None) => unreachable!("a value that is not done has a frame"),
            }
        }
    }

    fn version(&mut self) -> Step<()> {
        let is_known = self.input.byte()? == tags::VERSION && {
            self.version = self.input.varint()?;
            (tags::OLDEST_VERSION..=tags::LATEST_VERSION).contains(&self.version)
        };
        if is_known {
            return Ok(());
        }
        let message = "Unable to deserialize cloned data due to invalid or unsupported version.";
        Err(Stop::Thrown(data_clone_error(&self.kit.ctx, message)))
    }

    fn malformed<T>(&self) -> Step<T> {
        Err(Stop::Malformed(self.input.malformed()))
    }

    fn push(&mut self, frame: Frame<'js>) -> Step<()> {
        if self.frames.len() >= CLONE_DEPTH_MAX {
            return self.malformed();
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Gives `frame` the value that it waits for, if it is done, and goes on: to the next value, or the frame's end.
    fn step(&mut self, frame: Frame<'js>, done: Option<Value<'js>>) -> Step<Option<Value<'js>>> {
        match frame {
            Frame::Properties { object, key, read, end } => {
                self.step_properties(object, key, read, end, done)
            }
            Frame::Elements { array, mut next, len } => {
                if let Some(value) = done {
                    plain::define(array.as_object(), next, value)?;
                    next += 1;
                }
                self.elements(array, next, len)
            }
            Frame::Map { map, mut flat } => {
                flat.extend(done);
                if self.input.peek() != Some(tags::END_MAP) {
                    self.push(Frame::Map { map, flat })?;
                    return self.begin();
                }
                self.end(flat.len())?;
                if flat.len() % 2 == 1 {
                    return self.malformed();
                }
                self.kit.call::<()>("fillMap", (map.clone(), flat))?;
                Ok(Some(map.into_value()))
            }
            Frame::Set { set, mut values } => {
                values.extend(done);
                if self.input.peek() != Some(tags::END_SET) {
                    self.push(Frame::Set { set, values })?;
                    return self.begin();
                }
                self.end(values.len())?;
                self.kit.call::<()>("fillSet", (set.clone(), values))?;
                Ok(Some(set.into_value()))
            }
            Frame::Error { error } => {
                let Some(cause) = done else { return self.malformed() };
                self.kit.call::<()>("hide", (error.clone(), "cause", cause))?;
                self.error_members(error)
            }
        }
    }

    /// The end tag and the number of values before it.
    fn end(&mut self, len: usize) -> Step<()> {
        self.input.tag()?;
        if usize::try_from(self.input.varint()?).ok() != Some(len) {
            return self.malformed();
        }
        Ok(())
    }

    fn step_properties(
        &mut self,
        object: Object<'js>,
        key: Option<Atom<'js>>,
        mut read: u32,
        end: u8,
        done: Option<Value<'js>>,
    ) -> Step<Option<Value<'js>>> {
        if let (Some(key), Some(value)) = (key, done) {
            // Defined and not set: a key `__proto__` is a key, and no setter of a handler runs.
            object.prop(key, Property::from(value).configurable().enumerable().writable())?;
            read += 1;
        }
        if self.input.peek() != Some(end) {
            let key = self.key()?;
            self.push(Frame::Properties { object, key: Some(key), read, end })?;
            return self.begin();
        }
        self.input.tag()?;
        if self.input.varint()? != read {
            return self.malformed();
        }
        if end != tags::END_OBJECT {
            // Arrays say their length once more.
            let len = self.input.varint()?;
            let held: f64 = object.get("length")?;
            if held != f64::from(len) {
                return self.malformed();
            }
        }
        Ok(Some(object.into_value()))
    }

    fn key(&mut self) -> Step<Atom<'js>> {
        let tag = self.input.tag()?;
        let ctx = self.kit.ctx.clone();
        let value = match tag {
            tags::INT32 => self.input.int()?.into_js(&ctx)?,
            tags::UINT32 => self.input.varint()?.into_js(&ctx)?,
            tags::DOUBLE => self.input.double()?.into_js(&ctx)?,
            tags::UTF8_STRING | tags::ONE_BYTE_STRING | tags::TWO_BYTE_STRING => self.text(tag)?.into_value(),
            _ => return self.malformed(),
        };
        Ok(Atom::from_value(ctx, &value)?)
    }

    fn text(&mut self, tag: u8) -> Step<JsString<'js>> {
        match self.input.text(tag)? {
            Text::Valid(text) => Ok(JsString::from_str(self.kit.ctx.clone(), &text)?),
            Text::Units(units) => {
                let units: TypedArray<'js, u16> = TypedArray::new(self.kit.ctx.clone(), units)?;
                Ok(self.kit.call("fromUnits", (units,))?)
            }
        }
    }

    /// A string with its tag.
    fn tagged_text(&mut self) -> Step<JsString<'js>> {
        let tag = self.input.tag()?;
        self.text(tag)
    }

    fn keep(&mut self, value: impl IntoJs<'js>) -> Step<Value<'js>> {
        let value = value.into_js(&self.kit.ctx.clone())?;
        self.objects.push(value.clone());
        Ok(value)
    }

    fn keep_object(&mut self, object: &Object<'js>) {
        self.objects.push(object.as_value().clone());
    }

    /// Reads a value, or the beginning of one whose frame is then on the stack.
    fn begin(&mut self) -> Step<Option<Value<'js>>> {
        let value = self.begin_any()?;
        let Some(value) = value else { return Ok(None) };
        if self.input.peek() == Some(tags::ARRAY_BUFFER_VIEW)
            && ArrayBuffer::from_value(value.clone()).is_some()
        {
            self.input.tag()?;
            return self.view(value).map(Some);
        }
        Ok(Some(value))
    }

    fn begin_any(&mut self) -> Step<Option<Value<'js>>> {
        let ctx = self.kit.ctx.clone();
        let tag = self.input.tag()?;
        let value = match tag {
            tags::VERIFY_OBJECT_COUNT => {
                self.input.varint()?;
                return self.begin_any();
            }
            tags::UNDEFINED => Value::new_undefined(ctx),
            tags::NULL => Value::new_null(ctx),
            tags::TRUE => Value::new_bool(ctx, true),
            tags::FALSE => Value::new_bool(ctx, false),
            tags::INT32 => Value::new_int(ctx, self.input.int()?),
            tags::UINT32 => Value::new_number(ctx, f64::from(self.input.varint()?)),
            tags::DOUBLE => self.double()?,
            tags::BIG_INT => self.big_int()?,
            tags::UTF8_STRING | tags::ONE_BYTE_STRING | tags::TWO_BYTE_STRING => self.text(tag)?.into_value(),
            tags::OBJECT_REFERENCE => {
                let id = usize::try_from(self.input.varint()?).expect("usize has 32 bits");
                match self.objects.get(id) {
                    Some(object) => object.clone(),
                    None => return self.malformed(),
                }
            }
            tags::BEGIN_OBJECT => {
                let object = Object::new(ctx)?;
                self.keep_object(&object);
                self.push(Frame::Properties { object, key: None, read: 0, end: tags::END_OBJECT })?;
                return Ok(None);
            }
            tags::BEGIN_SPARSE_ARRAY => return self.begin_sparse(),
            tags::BEGIN_DENSE_ARRAY => return self.begin_dense(),
            tags::BEGIN_MAP => {
                let map: Object<'js> = self.kit.call("map", ())?;
                self.keep_object(&map);
                self.push(Frame::Map { map, flat: Vec::new() })?;
                return Ok(None);
            }
            tags::BEGIN_SET => {
                let set: Object<'js> = self.kit.call("set", ())?;
                self.keep_object(&set);
                self.push(Frame::Set { set, values: Vec::new() })?;
                return Ok(None);
            }
            tags::ERROR => return self.begin_error(),
            _ => self.leaf(tag)?,
        };
        Ok(Some(value))
    }

    /// An object that holds no other.
    fn leaf(&mut self, tag: u8) -> Step<Value<'js>> {
        let ctx = self.kit.ctx.clone();
        let made: Value<'js> = match tag {
            tags::DATE => {
                let milliseconds = self.double()?;
                self.kit.call("date", (milliseconds,))?
            }
            tags::TRUE_OBJECT | tags::FALSE_OBJECT => self.kit.call("box", (tag == tags::TRUE_OBJECT,))?,
            tags::NUMBER_OBJECT => {
                let number = self.double()?;
                self.kit.call("box", (number,))?
            }
            tags::BIG_INT_OBJECT => {
                let value = self.big_int()?;
                self.kit.call("box", (value,))?
            }
            tags::STRING_OBJECT => {
                let text = self.tagged_text()?;
                self.kit.call("box", (text,))?
            }
            tags::REG_EXP => {
                let source = self.tagged_text()?;
                let flags = self.input.varint()?;
                self.kit.call("regExp", (source, flags))?
            }
            tags::ARRAY_BUFFER => ArrayBuffer::new_copy(ctx, self.input.counted()?)?.into_value(),
            tags::RESIZABLE_ARRAY_BUFFER => self.resizable()?,
            tags::ARRAY_BUFFER_TRANSFER => {
                let place = usize::try_from(self.input.varint()?).expect("usize has 32 bits");
                match self.moved.get(place) {
                    Some(buffer) => buffer.clone(),
                    None => return self.malformed(),
                }
            }
            tags::HOST_OBJECT => return self.host_object(),
            _ => return self.malformed(),
        };
        self.keep(made)
    }

    fn double(&mut self) -> Step<Value<'js>> {
        let number = self.input.double()?;
        let ctx = self.kit.ctx.clone();
        // The engine's shortcut to an integer forgets the sign of zero.
        let is_zero = number == 0.0;
        Ok(if is_zero { Value::new_float(ctx, number) } else { Value::new_number(ctx, number) })
    }

    fn big_int(&mut self) -> Step<Value<'js>> {
        let (is_negative, hex) = self.input.big_int()?;
        Ok(self.kit.call("bigInt", (is_negative, hex))?)
    }

    fn resizable(&mut self) -> Step<Value<'js>> {
        let len = usize::try_from(self.input.varint()?).expect("usize has 32 bits");
        let largest = usize::try_from(self.input.varint()?).expect("usize has 32 bits");
        if largest < len || largest > CLONE_LEN_MAX {
            return self.malformed();
        }
        let bytes: TypedArray<'js, u8> = TypedArray::new_copy(self.kit.ctx.clone(), self.input.raw(len)?)?;
        Ok(self.kit.call("resizable", (bytes, largest))?)
    }

    fn view(&mut self, buffer: Value<'js>) -> Step<Value<'js>> {
        let tag = self.input.byte()?;
        let offset = self.input.varint()?;
        let len = self.input.varint()?;
        if self.version >= tags::VERSION_WITH_VIEW_FLAGS {
            self.input.varint()?;
        }
        self.make_view(buffer, tag, offset, len)
    }

    fn make_view(&mut self, buffer: Value<'js>, tag: u8, offset: u32, len: u32) -> Step<Value<'js>> {
        let view: Value<'js> = self.kit.call("view", (buffer, tag, offset, len))?;
        if view.is_undefined() {
            return self.malformed();
        }
        self.keep(view)
    }

    /// Ours, and the views of Node, which have a buffer of their own that gets no id.
    fn host_object(&mut self) -> Step<Value<'js>> {
        const NODE_VIEWS: &[u8; 14] = b"bBCwWdDfF?BqQh";
        let kind = self.input.varint()?;
        if kind == tags::HOST_DOM_EXCEPTION {
            let (name, message, stack) = (self.tagged_text()?, self.tagged_text()?, self.tagged_text()?);
            let exception: Value<'js> = self.kit.call("domException", (name, message, stack))?;
            return self.keep(exception);
        }
        if kind == tags::HOST_REFERENCE {
            let number = self.input.varint()?;
            let Some(resolve) = &self.resolve else { return self.malformed() };
            let value: Value<'js> = resolve.call((number,))?;
            return self.keep(value);
        }
        let Some(tag) = NODE_VIEWS.get(usize::try_from(kind).expect("usize has 32 bits")) else {
            return self.malformed();
        };
        let bytes = self.input.counted()?;
        let len = u32::try_from(bytes.len()).expect("its length was 32 bits");
        let buffer = ArrayBuffer::new_copy(self.kit.ctx.clone(), bytes)?;
        self.make_view(buffer.into_value(), *tag, 0, len)
    }

    fn begin_sparse(&mut self) -> Step<Option<Value<'js>>> {
        let len = self.input.varint()?;
        let array = Array::new(self.kit.ctx.clone())?;
        array.as_object().set("length", len)?;
        self.keep_object(array.as_object());
        let object = array.into_object();
        self.push(Frame::Properties { object, key: None, read: 0, end: tags::END_SPARSE_ARRAY })?;
        Ok(None)
    }

    fn begin_dense(&mut self) -> Step<Option<Value<'js>>> {
        let len = self.input.varint()?;
        // Every element has a byte at least.
        if usize::try_from(len).expect("usize has 32 bits") > self.input.remaining() {
            return self.malformed();
        }
        let array = Array::new(self.kit.ctx.clone())?;
        self.keep_object(array.as_object());
        self.push(Frame::Elements { array, next: 0, len })?;
        Ok(None)
    }

    /// Elements from `next` on; behind the last come properties with names.
    fn elements(&mut self, array: Array<'js>, mut next: u32, len: u32) -> Step<Option<Value<'js>>> {
        while next < len && self.input.peek() == Some(tags::THE_HOLE) {
            self.input.tag()?;
            next += 1;
        }
        if next < len {
            self.push(Frame::Elements { array, next, len })?;
            return self.begin();
        }
        array.as_object().set("length", len)?;
        self.step_properties(array.into_object(), None, 0, tags::END_DENSE_ARRAY, None)
    }

    fn begin_error(&mut self) -> Step<Option<Value<'js>>> {
        let is_member = |tag| {
            matches!(tag, Some(tags::ERROR_MESSAGE | tags::ERROR_CAUSE | tags::ERROR_STACK | tags::ERROR_END))
        };
        let prototype = if is_member(self.input.peek()) { 0 } else { self.input.tag()? };
        let error: Option<Object<'js>> = self.kit.call("error", (prototype,))?;
        let Some(error) = error else { return self.malformed() };
        self.keep_object(&error);
        self.error_members(error)
    }

    fn error_members(&mut self, error: Object<'js>) -> Step<Option<Value<'js>>> {
        loop {
            match self.input.tag()? {
                tags::ERROR_MESSAGE => {
                    let message = self.tagged_text()?;
                    self.kit.call::<()>("hide", (error.clone(), "message", message))?;
                }
                tags::ERROR_STACK => {
                    let stack = self.tagged_text()?;
                    self.kit.call::<()>("hide", (error.clone(), "stack", stack))?;
                }
                tags::ERROR_CAUSE => {
                    self.push(Frame::Error { error })?;
                    return self.begin();
                }
                tags::ERROR_END => return Ok(Some(error.into_value())),
                _ => return self.malformed(),
            }
        }
    }
}
