//! Which addresses an application may reach. Everything that is not a public unicast address is refused, however it is
//! written, and so is every address of the machine itself, so that a handler cannot reach the machine, its network, or the
//! cloud's metadata through this program.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::str::FromStr;

/// A range of addresses: `10.0.0.0/8`, `fd00::/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    first: IpAddr,
    prefix: u32,
}

/// Why a text is not a range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a range of addresses: write an address and the length of the prefix, as in `10.0.0.0/8`"
)]
pub struct AddressRangeError(String);

/// An address as bits, and how many.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

impl AddressRange {
    /// Whether the address lies in the range.
    fn has(&self, address: IpAddr) -> bool {
        let (first, len) = bits(self.first);
        let (other, other_len) = bits(address);
        len == other_len && (first ^ other).checked_shr(len - self.prefix).unwrap_or(0) == 0
    }
}

impl FromStr for AddressRange {
    type Err = AddressRangeError;

    fn from_str(text: &str) -> Result<Self, AddressRangeError> {
        let wrong = || AddressRangeError(text.to_owned());
        let (address, prefix) =
            text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let first: IpAddr = address.parse().map_err(|_| wrong())?;
        let (_, len) = bits(first);
        let prefix = prefix.map_or(Ok(len), |prefix| prefix.parse().map_err(|_| wrong()))?;
        if prefix > len { Err(wrong()) } else { Ok(Self { first, prefix }) }
    }
}

impl std::fmt::Display for AddressRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

/// Which addresses are connected to.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    allow: Vec<AddressRange>,
    /// Whether the machine itself has an address.
    is_own: fn(IpAddr) -> bool,
}

impl Policy {
    pub(crate) fn new(allow: Vec<AddressRange>) -> Self {
        Self { allow, is_own }
    }

    /// Whether a connection to the address may be made.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_allowed = self.allow.iter().any(|range| range.has(address));
        is_allowed || (is_public(address) && !(self.is_own)(address))
    }
}

/// Whether the machine has the address now: its own listeners would take a connection for one from inside, past any firewall.
/// Sockets are asked, which send nothing: one can be bound to such an address, and what is sent there would leave from there.
/// (Where the system lets any address be bound, the second says so of all but an interface's further addresses.)
fn is_own(address: IpAddr) -> bool {
    // Of documentation: no machine has it.
    let (any, nobodys): (IpAddr, IpAddr) = match address {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into()),
        IpAddr::V6(_) => {
            (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into())
        }
    };
    let can_bind = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
    let leaves_from = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((address, 1))?;
        socket.local_addr()
    };
    (can_bind(address) && !can_bind(nobodys)) || leaves_from().is_ok_and(|from| from.ip() == address)
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// The blocks of the IANA registry of special addresses that no public server has, and the virtual server of Azure
/// that hands out a machine's credentials, which has an address like a public one.
fn is_public_v4(address: Ipv4Addr) -> bool {
    const AZURE_WIRE_SERVER: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);
    !matches!(
        address.octets(),
        [0 | 10 | 127 | 224..=255, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 0, 0 | 2, _]
            | [192, 168, ..]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
    ) && address != AZURE_WIRE_SERVER
}

/// Global unicast is `2000::/3`. What translates to an IPv4 address is judged by that address.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, .., high, low] = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match (first, second) {
        // NAT64 by the well-known prefix.
        (0x64, 0xff9b) if address.segments()[2..6] == [0; 4] => is_public_v4(v4(high, low)),
        // 6to4.
        (0x2002, _) => is_public_v4(v4(second, third)),
        // Teredo, benchmarks, ORCHID: the protocol assignments of 2001::/23.
        (0x2001, 0..=0x1ff) => false,
        // Documentation.
        (0x2001, 0xdb8) | (0x3fff, 0..=0xfff) => false,
        _ => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(policy: &Policy, address: &str) -> bool {
        policy.allows(address.parse().unwrap())
    }

    #[test]
    fn addresses_that_are_not_public_are_refused_however_they_are_written() {
        let policy = Policy::new(Vec::new());
        let refused = [
            "127.0.0.1",
            "127.255.0.9",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "192.0.0.192",
            "168.63.129.16",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for address in refused {
            assert!(!allows(&policy, address), "{address}");
        }
        for address in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "8.8.8.8",
            "::ffff:8.8.8.8",
            "2606:4700:4700::1111",
            "64:ff9b::8.8.8.8",
            "2002:808:808::",
        ] {
            assert!(allows(&policy, address), "{address}");
        }
    }

    #[test]
    fn an_allowed_range_is_allowed_and_nothing_beside_it() {
        let ranges = ["10.1.0.0/16", "::1", "127.0.0.1/32"].map(|range| range.parse().unwrap());
        let policy = Policy::new(ranges.to_vec());
        for address in ["10.1.0.0", "10.1.255.255", "::1", "127.0.0.1", "::ffff:10.1.2.3"] {
            assert!(allows(&policy, address), "{address}");
        }
        for address in ["10.2.0.0", "10.0.255.255", "::2", "127.0.0.2"] {
            assert!(!allows(&policy, address), "{address}");
        }
        assert!(allows(&Policy::new(vec!["0.0.0.0/0".parse().unwrap()]), "127.0.0.1"));
        assert!(allows(&Policy::new(vec!["::/0".parse().unwrap()]), "fe80::1"));
    }

    #[test]
    fn an_address_of_the_machine_itself_is_refused_unless_allowed() {
        let has = |address: IpAddr| address == IpAddr::from([203, 1, 2, 3]);
        let mut policy = Policy { allow: Vec::new(), is_own: has };
        assert!(!allows(&policy, "203.1.2.3") && !allows(&policy, "::ffff:203.1.2.3"));
        assert!(allows(&policy, "203.1.2.4"));
        policy.allow.push("203.1.2.0/24".parse().unwrap());
        assert!(allows(&policy, "203.1.2.3"));
    }

    #[test]
    fn the_machine_knows_its_addresses() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        for other in ["1.1.1.1", "192.0.2.7", "2606:4700:4700::1111"] {
            assert!(!is_own(other.parse().unwrap()), "{other}");
        }
    }

    #[test]
    fn a_range_is_an_address_and_a_length() {
        for (text, shown) in [("10.0.0.0/8", "10.0.0.0/8"), ("::1", "::1/128"), ("1.2.3.4", "1.2.3.4/32")] {
            assert_eq!(text.parse::<AddressRange>().unwrap().to_string(), shown);
        }
        for text in ["", "localhost", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "/8"] {
            assert!(text.parse::<AddressRange>().is_err(), "{text}");
        }
    }
}
