//! The bucket's options for `deploy` and for the commands below it: they may stand before or after the command's name.

use clap::{ArgMatches, Args, Command, FromArgMatches};
use holdfast_bucket::BucketArgs;

/// [`BucketArgs`] that commands below inherit.
#[derive(Clone, Debug)]
pub struct SharedBucket(pub BucketArgs);

impl Args for SharedBucket {
    fn augment_args(command: Command) -> Command {
        let own = BucketArgs::augment_args(Command::new("bucket"));
        // What is required cannot be inherited: a missing one is found when the value is made.
        own.get_arguments()
            .fold(command, |command, arg| command.arg(arg.clone().global(true).required(false)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SharedBucket {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        if matches.get_one::<String>("url").is_none() {
            return Err(clap::Error::raw(
                clap::error::ErrorKind::MissingRequiredArgument,
                "where is the bucket? Give --bucket URL, or set HOLDFAST_BUCKET\n",
            ));
        }
        BucketArgs::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}
