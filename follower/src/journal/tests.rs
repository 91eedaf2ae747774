mod crashing;
mod faults;
mod keeping;
mod sim_disk;
mod support;
