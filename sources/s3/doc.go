// Package s3 reads objects from buckets by the interface of Amazon's S3, which many servers have.
//
// In go an endpoint, the name of a bucket, and keys; out come the list of its objects with their versions, and the bytes of
// one. Objects are asked for by the version that the list has, and anything else is refused. Every answer, and the list as a
// whole, is bounded. Connections are opened by internal/egress only. Redirects are not followed, so that nothing that is signed
// goes to another host.
//
// Errors contain nothing of an answer, and no secret. The package writes nothing, to disk or to a bucket.
package s3
