//! Every way of turning a knob, as a user writes it.

use fit::knob::{Error, FileChange};
use fit::{Knob, Setting};

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn turned(command: &str, name: &str, template: Option<&str>, value: &str) -> Setting {
    let mut setting = Setting { words: words(command), ..Setting::default() };
    Knob::new(name, template, &words(command)).unwrap().set(value, &mut setting).unwrap();
    setting
}

#[test]
fn flags_and_overrides_of_the_command_need_no_template() {
    let command = "python train.py --batch-size 32 model.depth=4 --lr=1";
    let set = |name, value| turned(command, name, None, value).words.join(" ");
    assert_eq!(set("batch_size", "64"), "python train.py --batch-size 64 model.depth=4 --lr=1");
    assert_eq!(set("depth", "8"), "python train.py --batch-size 32 model.depth=8 --lr=1");
    assert_eq!(set("lr", "2"), "python train.py --batch-size 32 model.depth=4 --lr=2");
}

#[test]
fn templates_replace_what_is_there_and_append_what_is_not() {
    let set = |command: &str, template| turned(command, "b", Some(template), "7").words.join(" ");
    assert_eq!(set("python t.py -b 3", "-b {}"), "python t.py -b 7");
    assert_eq!(
        set("python t.py", "--per_device_train_batch_size {}"),
        "python t.py --per_device_train_batch_size 7"
    );
    assert_eq!(set("python t.py data.batch=3", "data.batch={}"), "python t.py data.batch=7");
    assert_eq!(set("python t.py", "+data.size=[{},{}]"), "python t.py +data.size=[7,7]");
}

#[test]
fn variables_and_config_files() {
    let setting = turned("python t.py", "b", Some("BATCH={}"), "7");
    assert_eq!(setting.environment, [("BATCH".to_owned(), "7".to_owned())]);
    let setting =
        turned("python t.py --config c/a.yaml", "b", Some("c/a.yaml:train.batch={}"), "7");
    let change =
        FileChange { path: "c/a.yaml".into(), key: "train.batch".into(), value: "7".into() };
    assert_eq!(setting.files, [change]);
}

#[test]
fn what_cannot_change_anything_is_refused_with_a_cure() {
    let new = |template| {
        Knob::new("batch", template, &words("python t.py --config a.yaml --last")).unwrap_err()
    };
    assert_eq!(new(Some("--batch 3")), Error::NoHole("batch".into()));
    assert_eq!(new(None), Error::Unknown("batch".into()));
    assert!(matches!(new(Some("b.yaml:x={}")), Error::FileNotNamed(..)));
    assert!(matches!(new(Some("a.yaml:x")), Error::NoHole(..)));
    assert!(new(None).hint().contains("--set batch='--batch {}'"));
    let last = Knob::new("last", None, &words("python t.py --last")).unwrap_err();
    assert_eq!(last, Error::NoValue("--last".into()));
}

#[test]
fn a_world_has_a_number_of_ranks() {
    let (knob, mut setting) = (Knob::world("world-size"), Setting::default());
    knob.set(" 16", &mut setting).unwrap();
    assert_eq!((setting.world_size, setting.environment.len()), (Some(16), 0));
    let error = knob.set("many", &mut setting).unwrap_err();
    assert!(error.to_string().contains("`many` ranks") && error.hint().contains("world-size=8"));
}
