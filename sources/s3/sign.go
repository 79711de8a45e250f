package s3

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/sources/sigv4"
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

// sign adds the signature of version 4 to a request without a body, whose query is encoded by encodeQuery.
func sign(req *http.Request, keys Keys, region string, now time.Time) {
	sigv4.Sign(req, nil, sigv4.Keys(keys), sigv4.Scope{Region: region, Service: sigv4.S3}, now)
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
