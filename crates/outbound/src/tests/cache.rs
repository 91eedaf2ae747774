//! The Cache API as isolates ask for it.

use bytes::Bytes;
use holdfast_rpc::whole_body;
use serde_json::{Value, json};

use super::support::{allowed, outbound};
use crate::{BucketReply, Outbound, read_whole};

async fn ask(client: &Outbound, request: Value, body: &'static str) -> (Value, Bytes) {
    let request = request.to_string();
    let reply = client.ask_cache(request.as_bytes(), whole_body(Bytes::from_static(body.as_bytes()))).await;
    let BucketReply { head, body } = reply.unwrap();
    (serde_json::from_slice(&head).unwrap(), read_whole(body, 1 << 20).await.unwrap())
}

#[tokio::test]
async fn what_is_put_is_found_by_its_cache_and_url() {
    let client = outbound(allowed());
    let put = json!({
        "method": "put", "url": "https://h/", "status": 203, "statusText": "Well",
        "headers": [["Cache-Control", "max-age=60"], ["Content-Length", "9"]], "lastModified": 5_000,
    });
    assert_eq!(ask(&client, put.clone(), "kept").await, (json!({}), Bytes::new()));
    let find = |more: Value| {
        let mut request = json!({ "method": "match", "url": "https://h/" });
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    let headers = json!([
        ["Cache-Control", "max-age=60"],
        ["CF-Cache-Status", "HIT"],
        ["Age", "0"],
        ["Content-Length", "4"],
    ]);
    let found = json!({ "status": 203, "statusText": "Well", "headers": headers, "hasBody": true });
    assert_eq!(ask(&client, find(json!({})), "").await, (found, Bytes::from_static(b"kept")));
    let (unchanged, body) = ask(&client, find(json!({ "modifiedSince": 5_000 })), "").await;
    assert_eq!((&unchanged["status"], &unchanged["hasBody"], body.len()), (&json!(304), &json!(false), 0));
    assert_eq!(ask(&client, find(json!({ "cache": "mine" })), "").await.0, Value::Null);
    for deleted in [true, false] {
        let delete = json!({ "method": "delete", "url": "https://h/" });
        assert_eq!(ask(&client, delete, "").await.0, json!({ "deleted": deleted }));
    }
    let error = client.ask_cache(b"{}", whole_body(Bytes::new())).await.unwrap_err();
    assert!(error.message.contains("cannot be read"), "{error}");
}
