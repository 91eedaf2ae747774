mod crashing;
mod faults;
mod filling;
mod keeping;
mod sim_disk;
mod support;
