package sigv4_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
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

// TestGitPassword has a password of CodeCommit as it is described: the canonical request, the text, and the key, each written out.
func TestGitPassword(t *testing.T) {
	keys := sigv4.Keys{ID: "AKIDEXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	const host, path = "git-codecommit.us-east-1.amazonaws.com", "/v1/repos/fleet"
	request := sha256.Sum256([]byte("GIT\n/v1/repos/fleet\n\nhost:git-codecommit.us-east-1.amazonaws.com\n\nhost\n"))
	text := "AWS4-HMAC-SHA256\n20150830T123600\n20150830/us-east-1/codecommit/aws4_request\n" + hex.EncodeToString(request[:])
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	key := mac(mac(mac(mac([]byte("AWS4"+keys.Secret), "20150830"), "us-east-1"), "codecommit"), "aws4_request")
	want := "20150830T123600Z" + hex.EncodeToString(mac(key, text))
	if got := sigv4.GitPassword(keys, host, path, "us-east-1", time.Date(2015, 8, 30, 14, 36, 0, 0, time.FixedZone("", 7200))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
