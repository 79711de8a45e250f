package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Keys sign requests. The zero value signs nothing. They print as a fixed word, so that no log or error shows them by accident.
type Keys struct {
	ID, Secret string
	// Token comes with keys that end; empty for others.
	Token string
}

// String returns a fixed text, so that the content is not printed.
func (Keys) String() string { return "(keys)" }

// GoString returns a fixed text, so that the content is not printed.
func (Keys) GoString() string { return "(keys)" }

func (k Keys) anonymous() bool { return k == Keys{} }

const (
	scheme    = "AWS4-HMAC-SHA256"
	dateOnly  = "20060102"
	dateTime  = "20060102T150405Z"
	emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// sign adds the signature of version 4 to a request without a body, whose query is encoded by encodeQuery.
func sign(req *http.Request, keys Keys, region string, now time.Time) {
	now = now.UTC()
	req.Header.Set("X-Amz-Date", now.Format(dateTime))
	req.Header.Set("X-Amz-Content-Sha256", emptyBody)
	if keys.Token != "" {
		req.Header.Set("X-Amz-Security-Token", keys.Token)
	}
	names, headers := signed(req)
	request := strings.Join([]string{req.Method, req.URL.EscapedPath(), req.URL.RawQuery, headers, names, emptyBody}, "\n")
	scope := now.Format(dateOnly) + "/" + region + "/s3/aws4_request"
	text := strings.Join([]string{scheme, now.Format(dateTime), scope, hexSum(request)}, "\n")
	key := []byte("AWS4" + keys.Secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	req.Header.Set("Authorization", fmt.Sprintf("%s Credential=%s/%s,SignedHeaders=%s,Signature=%s", scheme, keys.ID, scope, names, hex.EncodeToString(mac(key, text))))
}

// signed returns the headers that are signed: the host, a range, and all of Amazon's.
func signed(req *http.Request) (names, headers string) {
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	values := map[string]string{"host": host}
	list := []string{"host"}
	for name := range req.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") || lower == "range" {
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

func hexSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// encode writes text as signatures want it in a path or a query: as it is or, but for letters, digits and -._~, by its bytes.
func encode(text, safe string) string {
	const digits = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0, strings.IndexByte(safe, c) >= 0:
			out.WriteByte(c)
		default:
			out.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return out.String()
}

// encodeQuery is url.Values.Encode in the form that is signed.
func encodeQuery(values url.Values) string {
	var parts []string
	for name, all := range values {
		for _, value := range all {
			parts = append(parts, encode(name, "")+"="+encode(value, ""))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "&")
}
