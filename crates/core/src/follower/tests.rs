mod adopting;
mod appending;
mod crashing;
mod replaying;
mod sealing;
mod support;
