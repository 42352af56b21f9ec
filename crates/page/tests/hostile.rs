//! Recordings come from strangers: whatever numbers they hold, a page is made of them.

use allocator::{Settings, reproduce};
use page::{Bundle, Item, Story, render};
use serde_json::json;

/// Addresses, sizes and frees that no allocator would have written.
const PROGRAMS: [&str; 6] = [
    "",
    "free_requested 0x1000 512\nfree_completed 0x1000 512",
    "segment_alloc 0xffffffffffffff00 20971520\nalloc 0xffffffffffffff00 4194304",
    "segment_alloc 0x1000000 20971520\nalloc 0x1000000 4194304\nalloc 0x1000000 4194304\nsegment_free 0x1000000 1",
    "segment_map 0x1000000 2097152\nsegment_unmap 0x0 18446744073709551615\nalloc 0x1000000 512",
    "oom 18446744073709551615\nalloc 0x0 0\nfree_completed 0x0 0\nalloc 0x0 1099511627776",
];

#[test]
fn a_page_is_made_of_anything() {
    for program in PROGRAMS {
        let recording = recording::text::recording(&format!("torch 2.15.0\n{program}")).unwrap();
        let settings = Settings::of(&recording.about).unwrap();
        let timeline = reproduce(&recording, &settings).timeline;
        let anatomy = anatomy::dissect(&recording, &timeline);
        let story = Story::of(&recording, &timeline, &anatomy, "");
        assert!(0 < story.bytes(), "{program}");
        let item = Item { name: String::new(), report: json!({}), story: Some(story) };
        let page = render(&Bundle { items: vec![item], ..Bundle::default() });
        assert!(page.ends_with("</html>\n"), "{program}");
    }
}
