package sigv4_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/sources/sigv4"
)

// TestSign has the signature of the example in Amazon's documentation.
func TestSign(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	keys := sigv4.Keys{ID: "AKIDEXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	sigv4.Sign(req, nil, keys, sigv4.Scope{Region: "us-east-1", Service: "iam"}, time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))
	want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request,SignedHeaders=content-type;host;x-amz-date," +
		"Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
	if got := req.Header.Get("Authorization"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if shown := fmt.Sprintf("%v %+v %#v", keys, keys, keys); shown != "(keys) (keys) (keys)" {
		t.Errorf("keys print as %s", shown)
	}
}
