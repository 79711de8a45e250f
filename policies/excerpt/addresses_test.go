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
		"with escaped slashes":         {`{"url":"https:\/\/bob:hunter2@reg.example\/v2\/?n=1","n":1}`, `{"url":"https:\/\/reg.example\/v2\/","n":1}`},
		"escaped twice":                {`"{\"u\":\"https:\\\/\\\/bob:hunter2@reg.example\\\/v2\"}"`, `"{\"u\":\"https:\\\/\\\/reg.example\\\/v2\"}"`},
		"with slashes as codes":        {`"https:\u002f\u002Fbob:hunter2@reg.example"`, `"https:\u002f\u002Freg.example"`},
		"with escaped slashes, bare":   {`"https:\/\/reg.example\/v2"`, `"https:\/\/reg.example\/v2"`},
		"without a scheme":             {`dial bob:hunter2@db.example/shop?sslmode=off: refused`, `dial db.example/shop: refused`},
		"so, with a port":              {`cannot reach bob:hunter2@db:5432.`, `cannot reach db:5432.`},
		"so, with escaped slashes":     {`{"dsn":"bob:hunter2@db.example\/shop"}`, `{"dsn":"db.example\/shop"}`},
		"so, without a name":           {`redis :hunter2@cache:6379/0 fails`, `redis cache:6379/0 fails`},
		"so, after a key":              {`dsn=bob:hunter2@db.example/shop, n=1`, `dsn=db.example/shop, n=1`},
		"so, in parentheses":           {`database (bob:hunter2@db/shop) is away`, `database (db/shop) is away`},
		"so, with a slash in it":       {`bob:hun/ter2@db.example/shop fails`, `db.example/shop fails`},
		"so, with an at in it":         {`bob:hun@ter2@db.example/shop fails`, `db.example/shop fails`},
		"so, of an address as name":    {`ann@corp.example:hunter2@db.example/shop fails`, `db.example/shop fails`},
		"so, of a driver":              {`root:hunter2@tcp(127.0.0.1:3306)/shop?x=1 fails`, `tcp(127.0.0.1:3306)/shop fails`},
		"so, of version 6":             {`bob:hunter2@[2001:db8::1]:5432/shop fails`, `[2001:db8::1]:5432/shop fails`},
		"so, beside one with a scheme": {`http://a.example/x:y@z.example/v2, bob:hunter2@db/shop`, `http://a.example/x:y@z.example/v2, db/shop`},
		"an image by digest":           {`reg.example:5000/app:v1@sha256:0123/ab, app:v1@sha256:0123: not found`, `reg.example:5000/app:v1@sha256:0123/ab, app:v1@sha256:0123: not found`},
		"a revision":                   {`fix:it@sha1:7d1cca4d fails`, `fix:it@sha1:7d1cca4d fails`},
		"a module":                     {`main.go:12:k8s.io/api@v0.30.1/core fails`, `main.go:12:k8s.io/api@v0.30.1/core fails`},
		"a user":                       {`User "oidc:ann@example.com" cannot list`, `User "oidc:ann@example.com" cannot list`},
		"an e-mail address":            {`signed by Ann <ann@example.com>: see ann@example.com/keys`, `signed by Ann <ann@example.com>: see ann@example.com/keys`},
		"a name at a host":             {`git@host.example:a/b.git: no key`, `git@host.example:a/b.git: no key`},
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
		"cut in a password, by itself":    strings.Repeat("x ", most/2-4) + "bob:hunt" + secret + "@db/shop",
		"many without a scheme":           strings.Repeat("bob:"+secret+"@db/shop ", 100_000),
		"one without a scheme, and end":   "bob:" + strings.Repeat(secret+":@", 100_000),
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
	userinfo = regexp.MustCompile(`:(\\*/|\\+u002[fF]){2}[^/\\\s\v"'<>` + "`" + `]*@`)
	schemed  = regexp.MustCompile(`:(\\*/|\\+u002[fF]){2}`)
	password = regexp.MustCompile(`(^|[ "])[a-z]*:[a-z0-9]+@[a-z]+(:[0-9]{1,5}|\\*)/`)
	query    = regexp.MustCompile(`:(\\*/|\\+u002[fF]){2}[^\s\v"'<>` + "`" + `]*[?#][^\s\v:;,.)\]}"'<>` + "`" + `]`)
)

// FuzzWithoutCredentials: neither userinfo nor a query of an address stays, and what has none is left as it is.
func FuzzWithoutCredentials(f *testing.F) {
	for _, seed := range []string{
		"GET https://bob:hunter2@reg.example/token?account=bob#x: 401", `"https://a:\"b@c/?d e"`, "a://b://c:d@e?f", "://@", `\"x://y@z\"`, "x://?", "x://[::1@", "x://:", "é://ü@ö?ß", "a://b:c/d://e@f", `"x://'y@z`, `"://\#"#`, `"a:\/\/b:c@d\/e?f"`, "a:b@c/d e:f@g:1", "a:b@c/d:e@f/g", "http://a/b:c@d/e,f:g@h/i", `:\u002f/a:b@c`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		got := excerpt.WithoutCredentials(message)
		if found := userinfo.FindString(got) + query.FindString(got) + password.FindString(got); found != "" {
			t.Errorf("%q: %q has %q", message, got, found)
		}
		if !schemed.MatchString(message) && !strings.Contains(message, "@") && got != message {
			t.Errorf("%q became %q", message, got)
		}
		if again := excerpt.WithoutCredentials(got); again != got {
			t.Errorf("%q: %q is made %q", message, got, again)
		}
	})
}
