package azureblob

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/sources/cloudtoken"
	"github.com/flotilla-io/flotilla/sources/s3"
)

// Keys of Secrets, in Flux's format.
const (
	accountKey = "accountKey"
	sasKey     = "sasKey"
)

// Access authenticates requests. Use ParseAccess; the zero value has none, for containers that anybody may read. It prints as a fixed
// word.
type Access struct {
	key         []byte // of the account
	sas         url.Values
	application *cloudtoken.AzureApplication
}

// String returns a fixed text, so that the content is not printed.
func (Access) String() string { return "(access)" }

// GoString returns a fixed text, so that the content is not printed.
func (Access) GoString() string { return "(access)" }

// ParseAccess reads a Secret: accountKey; or sasKey; or tenantId, clientId and clientSecret. Errors: s3.ErrCredentials.
func ParseAccess(data map[string][]byte) (Access, error) {
	text := func(key string) string { return strings.TrimSpace(string(data[key])) }
	switch {
	case text(accountKey) != "":
		key, err := base64.StdEncoding.DecodeString(text(accountKey))
		if err != nil {
			return Access{}, fmt.Errorf("%w: its %s is no base64", s3.ErrCredentials, accountKey)
		}
		return Access{key: key}, nil
	case text(sasKey) != "":
		sas, err := url.ParseQuery(strings.TrimPrefix(text(sasKey), "?"))
		if err != nil || sas.Get("sig") == "" {
			return Access{}, fmt.Errorf("%w: its %s is no shared access signature, such as sv=…&sig=…", s3.ErrCredentials, sasKey)
		}
		return Access{sas: sas}, nil
	}
	if text("clientCertificate") != "" {
		return Access{}, fmt.Errorf("%w: its clientCertificate is not supported: use clientSecret", s3.ErrCredentials)
	}
	application := &cloudtoken.AzureApplication{Tenant: text("tenantId"), Client: text("clientId"), Secret: text("clientSecret")}
	if _, err := application.At("", ""); err != nil {
		return Access{}, fmt.Errorf("%w: it needs %s, or %s, or tenantId with clientId and clientSecret", s3.ErrCredentials, accountKey, sasKey)
	}
	return Access{application: application}, nil
}

// bearer gives out tokens for storage.
type bearer struct{ source *cloudtoken.Source }

func (b bearer) token(ctx context.Context) (string, error) {
	token, err := b.source.Token(ctx)
	if errors.Is(err, cloudtoken.ErrRefused) {
		return "", fmt.Errorf("%w: %w: correct tenantId, clientId and clientSecret in the Secret", s3.ErrUnauthorized, err)
	}
	return token, err
}

// version is that of the interface.
const version = "2021-12-02"

// sign adds what authenticates a request of an account.
func (a Access) sign(ctx context.Context, req *http.Request, account string, by *bearer, now time.Time) error {
	req.Header.Set("X-Ms-Version", version)
	req.Header.Set("X-Ms-Date", now.UTC().Format(http.TimeFormat))
	switch {
	case a.key != nil:
		mac := hmac.New(sha256.New, a.key)
		mac.Write([]byte(signed(req, account)))
		req.Header.Set("Authorization", "SharedKey "+account+":"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	case a.sas != nil:
		query := req.URL.Query()
		for name, values := range a.sas {
			query[name] = values
		}
		req.URL.RawQuery = query.Encode()
	case by != nil:
		token, err := by.token(ctx)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return nil
}

// signed is what the key of an account signs of a request without a body.
func signed(req *http.Request, account string) string {
	of := req.Header.Get
	lines := []string{
		req.Method, of("Content-Encoding"), of("Content-Language"), "", of("Content-Md5"), of("Content-Type"), "", // the date is in a header of Azure's
		of("If-Modified-Since"), of("If-Match"), of("If-None-Match"), of("If-Unmodified-Since"), of("Range"),
	}
	var names []string
	for name := range req.Header {
		if strings.HasPrefix(strings.ToLower(name), "x-ms-") {
			names = append(names, strings.ToLower(name))
		}
	}
	slices.Sort(names)
	for _, name := range names {
		lines = append(lines, name+":"+of(name))
	}
	lines = append(lines, "/"+account+req.URL.EscapedPath())
	query := req.URL.Query()
	names = names[:0]
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := slices.Sorted(slices.Values(query[name]))
		lines = append(lines, strings.ToLower(name)+":"+strings.Join(values, ","))
	}
	return strings.Join(lines, "\n")
}
