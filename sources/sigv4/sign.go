package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Keys sign requests. They print as a fixed word, so that no log or error shows them by accident.
type Keys struct {
	ID, Secret string
	// Token comes with keys that end; empty for others.
	Token string
}

// String returns a fixed text, so that the content is not printed.
func (Keys) String() string { return "(keys)" }

// GoString returns a fixed text, so that the content is not printed.
func (Keys) GoString() string { return "(keys)" }

// Scope is what a signature is for.
type Scope struct{ Region, Service string }

// S3 is the service that wants the digest of the body in a header, too.
const S3 = "s3"

const (
	scheme   = "AWS4-HMAC-SHA256"
	dateOnly = "20060102"
	dateTime = "20060102T150405Z"
)

// Sign adds the signature to a request with this body. The path of its URL is escaped once, and its query is sorted and encoded as
// signatures want it.
func Sign(req *http.Request, body []byte, keys Keys, to Scope, now time.Time) {
	now = now.UTC()
	digest := hexSum(body)
	req.Header.Set("X-Amz-Date", now.Format(dateTime))
	if to.Service == S3 {
		req.Header.Set("X-Amz-Content-Sha256", digest)
	}
	if keys.Token != "" {
		req.Header.Set("X-Amz-Security-Token", keys.Token)
	}
	path := req.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	names, headers := signed(req)
	request := strings.Join([]string{req.Method, path, req.URL.RawQuery, headers, names, digest}, "\n")
	signature := keys.sign(request, to, now.Format(dateTime))
	req.Header.Set("Authorization", fmt.Sprintf("%s Credential=%s/%s,SignedHeaders=%s,Signature=%s", scheme, keys.ID, to.at(now.Format(dateTime)), names, signature))
}

// at returns the scope of signatures of a time.
func (s Scope) at(time string) string {
	return time[:len(dateOnly)] + "/" + s.Region + "/" + s.Service + "/aws4_request"
}

// sign returns the signature of a request in its canonical form.
func (k Keys) sign(request string, to Scope, time string) string {
	scope := to.at(time)
	text := strings.Join([]string{scheme, time, scope, hexSum([]byte(request))}, "\n")
	key := []byte("AWS4" + k.Secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, text))
}

// GitPassword returns the password by which a repository of CodeCommit at a path is read for a quarter of an hour; the name is the ID of
// the keys. It is a signature in a form of its own, of the words that all requests to the repository have in common.
func GitPassword(keys Keys, host, path, region string, now time.Time) string {
	const short = "20060102T150405" // the time is signed without its zone, and sent with it
	time := now.UTC().Format(short)
	request := "GIT\n" + path + "\n\nhost:" + host + "\n\nhost\n"
	return time + "Z" + keys.sign(request, Scope{region, "codecommit"}, time)
}

// signed returns the headers that are signed: the host, a range, the type of the body, and all of Amazon's.
func signed(req *http.Request) (names, headers string) {
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	values := map[string]string{"host": host}
	list := []string{"host"}
	for name := range req.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") || lower == "range" || lower == "content-type" {
			values[lower] = strings.TrimSpace(req.Header.Get(name))
			list = append(list, lower)
		}
	}
	slices.Sort(list)
	var out strings.Builder
	for _, name := range list {
		out.WriteString(name + ":" + values[name] + "\n")
	}
	return strings.Join(list, ";"), out.String()
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexSum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
