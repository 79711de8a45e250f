package excerpt_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// TestAddresses: of an address people need the host and the path; the rest of it may be credentials.
func TestAddresses(t *testing.T) {
	for name, tc := range map[string]struct{ message, want string }{
		"a token that a registry refuses": {
			`failed to resolve reference "r/a:1": unexpected status from GET request to https://bob:hunter2@reg.example/token?account=bob&password=hunter2&X-Amz-Signature=abcdef: 401 Unauthorized`,
			`failed to resolve reference "r/a:1": unexpected status from GET request to https://reg.example/token: 401 Unauthorized`,
		},
		"a signed address of a layer":  {`unexpected status code https://cdn.example/l/sha256:ab?sig=hunter2: 403 Forbidden`, `unexpected status code https://cdn.example/l/sha256:ab: 403 Forbidden`},
		"one in quotes":                {`Get "https://bob:hunter2@reg.example:5000/v2/?n=1": EOF`, `Get "https://reg.example:5000/v2/": EOF`},
		"in quotes that are escaped":   {`{"e":"Get \"https://bob:hunter2@reg.example/v2/?n=1\": EOF"}`, `{"e":"Get \"https://reg.example/v2/\": EOF"}`},
		"with a space, in quotes":      {`parse "https://bob:hunter2 x@reg.example/?a b": invalid userinfo`, `parse "https://reg.example/": invalid userinfo`},
		"with a quote, in quotes":      {`parse "https://bob:\"hunter2@reg.example/": invalid userinfo`, `parse "https://reg.example/": invalid userinfo`},
		"with a slash in the password": {`https://bob:a/hunter2@reg.example/v2 fails`, `https://reg.example/v2 fails`},
		"with an at in the password":   {`https://bob:a@hunter2@reg.example/v2 fails`, `https://reg.example/v2 fails`},
		"with a question mark in it":   {`https://bob:a?hunter2@reg.example/v2: fails`, `https://…: fails`},
		"cut off in the password":      {`cannot reach https://bob:hunter2`, `cannot reach https://…`},
		"with an address in its query": {`https://a.example/go?to=https://bob:hunter2@reg.example/v2&x=1 fails`, `https://a.example/go fails`},
		"with an address in its path":  {`https://a.example/go/https://bob:hunter2@reg.example/v2?x=1 fails`, `https://a.example/go/https://reg.example/v2 fails`},
		"with a fragment":              {`see https://reg.example/v2#hunter2.`, `see https://reg.example/v2.`},
		"with a name alone":            {`git+ssh://git@host.example/a.git fails`, `git+ssh://host.example/a.git fails`},
		"of version 6":                 {`https://bob:hunter2@[2001:db8::1]:5000/v2?a=b: EOF`, `https://[2001:db8::1]:5000/v2: EOF`},
		"two of them":                  {`http://a:b@c.example, then (http://d:e@f.example?g)`, `http://c.example, then (http://f.example)`},
		"a digest in the path stays":   {`oci://reg.example/a@sha256:abc: not found`, `oci://reg.example/a@sha256:abc: not found`},
		"nothing is in it":             {`https://reg.example:5000/v2/: no such host`, `https://reg.example:5000/v2/: no such host`},
		"it ends with the host":        {`https://reg.example: no such host`, `https://reg.example: no such host`},
		"there is no address":          {`a:b@c? d://`, `a:b@c? d://`},
		"nothing":                      {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.WithoutCredentials(tc.message); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// TestWhatIsTooLong: a text that a member made long costs little, and no half of a password is left where it is cut.
func TestWhatIsTooLong(t *testing.T) {
	const secret, most = "hunter2", 64 << 10
	for name, text := range map[string]string{
		"many addresses":                  strings.Repeat("a://bob:"+secret+"@b?c ", 100_000),
		"addresses within addresses":      strings.Repeat("a://", 1_000_000),
		"quotes that never end":           strings.Repeat(`"a://`, 1_000_000),
		"cut in a name":                   strings.Repeat("x", most-len("a://hunt")) + "a://" + secret + "@reg.example",
		"cut in a password, after quotes": strings.Repeat("x", most-len(`"a://bob:hunt`)) + `"a://bob:` + secret + `@reg.example"`,
		"cut at the end of a sentence":    strings.Repeat("x", most-len("a://bob:hunt.")) + "a://bob:hunt." + secret + "@reg.example",
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			got := excerpt.WithoutCredentials(text)
			if strings.Contains(got, secret[:4]) || len(got) > most+len("…") || !strings.HasSuffix(got, "…") {
				t.Errorf("%d bytes, which end in %q", len(got), got[max(0, len(got)-80):])
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

var (
	userinfo = regexp.MustCompile(`://[^/\s\v"'<>` + "`" + `]*@`)
	query    = regexp.MustCompile(`://[^\s\v"'<>` + "`" + `]*[?#][^\s\v:;,.)\]}"'<>` + "`" + `]`)
)

// FuzzWithoutCredentials: neither userinfo nor a query of an address stays, and what has none is left as it is.
func FuzzWithoutCredentials(f *testing.F) {
	for _, seed := range []string{
		"GET https://bob:hunter2@reg.example/token?account=bob#x: 401", `"https://a:\"b@c/?d e"`, "a://b://c:d@e?f", "://@", `\"x://y@z\"`, "x://?", "x://[::1@", "x://:", "é://ü@ö?ß", "a://b:c/d://e@f", `"x://'y@z`, `"://\#"#`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		got := excerpt.WithoutCredentials(message)
		if found := userinfo.FindString(got) + query.FindString(got); found != "" {
			t.Errorf("%q: %q has %q", message, got, found)
		}
		if !strings.Contains(message, "://") && got != message {
			t.Errorf("%q became %q", message, got)
		}
		if again := excerpt.WithoutCredentials(got); again != got {
			t.Errorf("%q: %q is made %q", message, got, again)
		}
	})
}
