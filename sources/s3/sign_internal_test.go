package s3

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSign signs the requests of Amazon's own examples.
func TestSign(t *testing.T) {
	keys := Keys{ID: "AKIAIOSFODNN7EXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	for name, tc := range map[string]struct {
		url, ranges, want string
	}{
		"an object":             {url: "https://examplebucket.s3.amazonaws.com/test.txt", ranges: "bytes=0-9", want: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		"a query with no value": {url: "https://examplebucket.s3.amazonaws.com/?lifecycle=", want: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		"a list":                {url: "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", want: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tc.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tc.ranges != "" {
				req.Header.Set("Range", tc.ranges)
			}
			sign(req, keys, "us-east-1", time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC))
			if _, got, _ := strings.Cut(req.Header.Get("Authorization"), "Signature="); got != tc.want {
				t.Errorf("signature = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestEncode(t *testing.T) {
	for text, want := range map[string]string{
		"apps/web.yaml": "apps/web.yaml", "a b+c/ä~": "a%20b%2Bc/%C3%A4~", "100%": "100%25", "a:b@c": "a%3Ab%40c",
	} {
		if got := encode(text, "/"); got != want {
			t.Errorf("encode(%q) = %q, want %q", text, got, want)
		}
	}
}

// FuzzPage: of whatever a server sends, an object has a key, and a page that is not the last has a next.
func FuzzPage(f *testing.F) {
	f.Add([]byte(`<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>1</NextContinuationToken><Contents><Key>a%2Fb+c</Key><Size>3</Size><ETag>"x"</ETag></Contents></ListBucketResult>`))
	f.Add([]byte(`<ListBucketResult><Contents><Key/></Contents></ListBucketResult>`))
	f.Add([]byte(`<Error><Code>x</Code></Error>`))
	f.Fuzz(func(t *testing.T, content []byte) {
		found, err := parsePage(content)
		if err != nil {
			return
		}
		for _, o := range found.objects {
			if o.Key == "" || o.Size < 0 || o.Version() == "" {
				t.Errorf("%+v is no object", o)
			}
		}
	})
}

// FuzzLent: keys that a service gives out can be in a header.
func FuzzLent(f *testing.F) {
	f.Add([]byte(`<AssumeRoleWithLDAPIdentityResponse><AssumeRoleWithLDAPIdentityResult><Credentials><AccessKeyId>a</AccessKeyId><SecretAccessKey>b</SecretAccessKey><SessionToken>c</SessionToken><Expiration>2026-08-01T12:00:00Z</Expiration></Credentials></AssumeRoleWithLDAPIdentityResult></AssumeRoleWithLDAPIdentityResponse>`))
	f.Fuzz(func(t *testing.T, content []byte) {
		keys, _, err := parseLent(content)
		if err == nil && (keys.ID == "" || keys.Secret == "" || strings.ContainsAny(keys.ID+keys.Token, "\r\n ")) {
			t.Errorf("%q are no keys", keys.ID)
		}
	})
}
