//! Serde spellings of the typed identifiers: tokens and names as their text, numbers as JSON numbers.

macro_rules! text {
    ($module:ident, $type:ty) => {
        pub(crate) mod $module {
            use serde::{Deserialize, Deserializer, Serializer};

            pub(crate) fn serialize<S: Serializer>(value: &$type, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(value)
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

macro_rules! optional {
    ($module:ident, $type:ty) => {
        pub(crate) mod $module {
            use serde::{Deserialize, Deserializer, Serializer};

            pub(crate) fn serialize<S: Serializer>(
                value: &Option<$type>,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                match value {
                    Some(value) => serializer.collect_str(value),
                    None => serializer.serialize_none(),
                }
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Option<$type>, D::Error> {
                let text = Option::<String>::deserialize(deserializer)?;
                text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
            }
        }
    };
}

macro_rules! number {
    ($module:ident, $type:ty) => {
        pub(crate) mod $module {
            use serde::{Deserialize, Deserializer, Serializer};

            pub(crate) fn serialize<S: Serializer>(value: &$type, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u64(value.get())
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                u64::deserialize(deserializer).map(<$type>::new)
            }
        }
    };
}

/// A log offset, where there is one.
pub(crate) mod log_offset_or_none {
    use holdfast_types::LogOffset;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<LogOffset>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(LogOffset::get).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<LogOffset>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(LogOffset::new))
    }
}

/// Ids of bodies.
pub(crate) mod r2_body_ids {
    use holdfast_types::R2BodyId;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &[R2BodyId], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(value.iter().map(R2BodyId::to_string))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<R2BodyId>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| text.parse().map_err(serde::de::Error::custom)).collect()
    }
}

/// A time, where there is one.
pub(crate) mod millis_or_none {
    use holdfast_types::Millis;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &Option<Millis>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(Millis::get).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Millis>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Millis::new))
    }
}

/// A time that may lie before 1970.
pub(crate) mod alarm_time {
    use holdfast_types::AlarmTime;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &AlarmTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(value.get())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AlarmTime, D::Error> {
        i64::deserialize(deserializer).map(AlarmTime::new)
    }
}

text!(cell_name, holdfast_types::CellName);
text!(content_hash, holdfast_types::ContentHash);
text!(fleet_id, holdfast_types::FleetId);
text!(follower_name, holdfast_types::FollowerName);
text!(host_id, holdfast_types::HostId);
text!(incarnation, holdfast_types::Incarnation);
text!(node_name, holdfast_types::NodeName);
text!(r2_body_id, holdfast_types::R2BodyId);
text!(session_id, holdfast_types::SessionId);
text!(waker_name, holdfast_types::WakerName);
text!(write_id, holdfast_types::WriteId);
text!(zone, holdfast_types::Zone);
optional!(optional_node_name, holdfast_types::NodeName);
optional!(optional_version_id, holdfast_types::VersionId);
number!(alarm_seq, holdfast_types::AlarmSeq);
number!(epoch, holdfast_types::Epoch);
number!(log_epoch, holdfast_types::LogEpoch);
number!(log_offset, holdfast_types::LogOffset);
number!(millis, holdfast_types::Millis);
number!(txid, holdfast_types::Txid);
