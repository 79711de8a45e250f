package keyservice_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/keyservice"
	"github.com/flotilla-io/flotilla/sources/sigv4"
	"github.com/flotilla-io/flotilla/sources/sops"
)

// What the files of the tests are encrypted for is written by the library of SOPS (see e2e/sops); the services here open it.

var now = time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)

const (
	awsCredentials   = "aws_access_key_id: AKIDEXAMPLE\naws_secret_access_key: secret-of-aws\naws_session_token: session\n"
	azureCredentials = "tenantId: tenant-1\nclientId: client-1\nclientSecret: secret-of-azure\n"
	vaultCredential  = "hvs.token\n"
)

// world is all services behind one server, under the names of their hosts. They open what e2e/sops wrote.
type world struct {
	*httptest.Server
	t      *testing.T
	google *rsa.PrivateKey

	mu    sync.Mutex
	asked []string
	// answers replace what a host says.
	answers map[string]http.HandlerFunc
}

// googleKey is that of a service account; one takes long to make.
var googleKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, answers: map[string]http.HandlerFunc{}}
	var err error
	if w.google, err = googleKey(); err != nil {
		t.Fatal(err)
	}
	w.Server = httptest.NewTLSServer(w)
	t.Cleanup(w.Close)
	return w
}

// services returns Services that find every host at the server.
func (w *world) services(clouds bool) *keyservice.Services {
	return keyservice.New(keyservice.Options{
		Clouds: clouds, Clock: clocktesting.NewFakePassiveClock(now),
		TLS: &tls.Config{RootCAs: w.roots(), ServerName: "example.com", MinVersion: tls.VersionTLS12},
		Egress: egress.Dialer{
			LookupNetIP: func(context.Context, string, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("203.0.114.7")}, nil
			},
			Machine: func() ([]netip.Addr, error) { return nil, nil },
			Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, w.Listener.Addr().String())
			},
		},
	})
}

func (w *world) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(w.Certificate())
	return pool
}

// secret has credentials for all services.
func (w *world) secret() map[string][]byte {
	der, err := x509.MarshalPKCS8PrivateKey(w.google)
	if err != nil {
		w.t.Fatal(err)
	}
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "flux@shop.example", "private_key_id": "k1", "token_uri": "https://elsewhere.example/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return map[string][]byte{
		"sops.vault-token": []byte(vaultCredential), "sops.aws-kms": []byte(awsCredentials), "sops.azure-kv": []byte(azureCredentials), "sops.gcp-kms": account,
	}
}

func (w *world) ServeHTTP(out http.ResponseWriter, req *http.Request) {
	w.mu.Lock()
	w.asked = append(w.asked, req.Method+" "+req.Host+req.URL.RequestURI())
	by := w.answers[req.Host]
	w.mu.Unlock()
	if by == nil {
		by = map[string]http.HandlerFunc{
			"vault.example.com:8200": w.vault, "kms.eu-west-1.amazonaws.com": w.aws,
			"oauth2.googleapis.com": w.googleTokens, "cloudkms.googleapis.com": w.gcp,
			"login.microsoftonline.com": w.azureTokens, "shop.vault.azure.net": w.azure,
		}[req.Host]
	}
	if by == nil {
		http.Error(out, "no such host", http.StatusTeapot)
		return
	}
	by(out, req)
}

func (w *world) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.asked...)
}

func say(out http.ResponseWriter, what any) { _ = json.NewEncoder(out).Encode(what) }

func read(req *http.Request) map[string]any {
	var in map[string]any
	_ = json.NewDecoder(req.Body).Decode(&in)
	return in
}

func (w *world) vault(out http.ResponseWriter, req *http.Request) {
	wrapped, _ := read(req)["ciphertext"].(string)
	switch key, known := strings.CutPrefix(wrapped, "vault:v1:"); {
	case req.Header.Get("X-Vault-Token") != "hvs.token":
		out.WriteHeader(http.StatusForbidden)
		say(out, map[string]any{"errors": []string{"permission denied"}})
	case req.URL.Path != "/v1/teams/shop/decrypt/flux":
		out.WriteHeader(http.StatusNotFound)
	case !known:
		out.WriteHeader(http.StatusBadRequest)
	default:
		say(out, map[string]any{"data": map[string]string{"plaintext": key}})
	}
}

// opened is the key in what a cloud is sent.
func opened(by *base64.Encoding, mark string, of any) ([]byte, bool) {
	text, _ := of.(string)
	sealed, err := by.DecodeString(text)
	key, marked := bytes.CutPrefix(sealed, []byte(mark))
	return key, err == nil && marked
}

func (w *world) aws(out http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	again := req.Clone(req.Context())
	again.Header = http.Header{"Content-Type": req.Header["Content-Type"], "X-Amz-Target": req.Header["X-Amz-Target"]}
	keys := sigv4.Keys{ID: "AKIDEXAMPLE", Secret: "secret-of-aws", Token: "session"}
	sigv4.Sign(again, body, keys, sigv4.Scope{Region: "eu-west-1", Service: "kms"}, now)
	refuses := func(kind string) {
		out.WriteHeader(http.StatusBadRequest)
		say(out, map[string]string{"__type": kind})
	}
	var in struct {
		CiphertextBlob    string
		EncryptionContext map[string]string
	}
	_ = json.Unmarshal(body, &in)
	key, known := opened(base64.StdEncoding, "aws:", in.CiphertextBlob)
	switch {
	case req.Header.Get("Authorization") != again.Header.Get("Authorization"):
		refuses("com.amazon.coral.service#InvalidSignatureException")
	case req.Header.Get("X-Amz-Target") != "TrentService.Decrypt":
		refuses("UnknownOperationException")
	case !known || in.EncryptionContext["team"] != "shop":
		refuses("InvalidCiphertextException")
	default:
		say(out, map[string]string{"KeyId": "k", "Plaintext": base64.StdEncoding.EncodeToString(key)})
	}
}

func (w *world) googleTokens(out http.ResponseWriter, req *http.Request) {
	signing, signature := req.FormValue("assertion"), ""
	if at := strings.LastIndex(signing, "."); at > 0 {
		signing, signature = signing[:at], signing[at+1:]
	}
	sum := sha256.Sum256([]byte(signing))
	raw, _ := base64.RawURLEncoding.DecodeString(signature)
	_, text, _ := strings.Cut(signing, ".")
	claims, _ := base64.RawURLEncoding.DecodeString(text)
	var said map[string]any
	_ = json.Unmarshal(claims, &said)
	want := map[string]any{
		"iss": "flux@shop.example", "scope": "https://www.googleapis.com/auth/cloudkms", "aud": "https://oauth2.googleapis.com/token",
		"iat": float64(now.Unix()), "exp": float64(now.Add(10 * time.Minute).Unix()),
	}
	if rsa.VerifyPKCS1v15(&w.google.PublicKey, crypto.SHA256, sum[:], raw) != nil || req.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || !cmp.Equal(want, said) {
		http.Error(out, "{}", http.StatusBadRequest)
		return
	}
	say(out, map[string]any{"access_token": "token-of-google", "expires_in": 3599})
}

func (w *world) gcp(out http.ResponseWriter, req *http.Request) {
	key, known := opened(base64.StdEncoding, "gcp:", read(req)["ciphertext"])
	switch {
	case req.Header.Get("Authorization") != "Bearer token-of-google":
		http.Error(out, "{}", http.StatusUnauthorized)
	case req.URL.Path != "/v1/projects/shop/locations/global/keyRings/flux/cryptoKeys/files:decrypt":
		http.Error(out, "{}", http.StatusNotFound)
	case !known:
		http.Error(out, "{}", http.StatusBadRequest)
	default:
		say(out, map[string]string{"plaintext": base64.StdEncoding.EncodeToString(key)})
	}
}

func (w *world) azureTokens(out http.ResponseWriter, req *http.Request) {
	if req.URL.Path != "/tenant-1/oauth2/v2.0/token" || req.FormValue("client_secret") != "secret-of-azure" || req.FormValue("client_id") != "client-1" ||
		req.FormValue("grant_type") != "client_credentials" || req.FormValue("scope") != "https://vault.azure.net/.default" {
		http.Error(out, "{}", http.StatusUnauthorized)
		return
	}
	say(out, map[string]any{"access_token": "token-of-azure"})
}

func (w *world) azure(out http.ResponseWriter, req *http.Request) {
	in := read(req)
	key, known := opened(base64.RawURLEncoding, "azure:", in["value"])
	switch {
	case req.Header.Get("Authorization") != "Bearer token-of-azure":
		http.Error(out, "{}", http.StatusUnauthorized)
	case req.URL.RequestURI() != "/keys/files/0123/decrypt?api-version=7.4":
		http.Error(out, "{}", http.StatusNotFound)
	case !known || in["alg"] != "RSA-OAEP-256":
		http.Error(out, "{}", http.StatusBadRequest)
	default:
		say(out, map[string]string{"kid": "k", "value": base64.RawURLEncoding.EncodeToString(key)})
	}
}

// open opens a file of the library with a Secret.
func open(t *testing.T, by *keyservice.Services, secret map[string][]byte, name string, change ...string) (sops.Plain, error) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "sops", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(change...).Replace(string(content))
	if len(change) > 0 && text == string(content) {
		t.Fatal("nothing was changed")
	}
	keys, err := sops.ParseKeys(secret)
	if err != nil {
		t.Fatal(err)
	}
	keys.Serve(by.For(secret))
	file, err := sops.Read([]byte(text))
	if err != nil || file == nil {
		t.Fatalf("it is not taken for an encrypted file: %v", err)
	}
	return file.Open(t.Context(), keys)
}

// TestFilesOfTheLibrary opens files for each service, by what its documentation says of its interface.
func TestFilesOfTheLibrary(t *testing.T) {
	for name, asked := range map[string][]string{
		"vault.yaml": {"POST vault.example.com:8200/v1/teams/shop/decrypt/flux"},
		"vault.json": {"POST vault.example.com:8200/v1/teams/shop/decrypt/flux"},
		"aws.yaml":   {"POST kms.eu-west-1.amazonaws.com/"},
		"aws.env":    {"POST kms.eu-west-1.amazonaws.com/"},
		"gcp.yaml":   {"POST oauth2.googleapis.com/token", "POST cloudkms.googleapis.com/v1/projects/shop/locations/global/keyRings/flux/cryptoKeys/files:decrypt"},
		"azure.yaml": {"POST login.microsoftonline.com/tenant-1/oauth2/v2.0/token", "POST shop.vault.azure.net/keys/files/0123/decrypt?api-version=7.4"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			plain, err := open(t, w.services(true), w.secret(), name)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(plain.Content); !strings.Contains(text, "shop") || strings.Contains(text, "ENC[AES256_GCM,") {
				t.Errorf("it holds\n%s", text)
			}
			if diff := cmp.Diff(asked, w.told()); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefused says what is in the way, and sends nothing to whom it is not for.
func TestRefused(t *testing.T) {
	without := func(name string) func(map[string][]byte) { return func(s map[string][]byte) { delete(s, name) } }
	with := func(name, value string) func(map[string][]byte) {
		return func(s map[string][]byte) { s[name] = []byte(value) }
	}
	status := func(code int) http.HandlerFunc {
		return func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Location", "https://elsewhere.example/")
			http.Error(out, "{}", code)
		}
	}
	const (
		vault = "it is encrypted for Vault https://vault.example.com:8200/v1/teams/shop/keys/flux: "
		aws   = "it is encrypted for AWS KMS arn:aws:kms:eu-west-1:111122223333:key/9b1d: "
		gcp   = "it is encrypted for GCP KMS projects/shop/locations/global/keyRings/flux/cryptoKeys/files: "
		azure = "it is encrypted for Azure Key Vault https://shop.vault.azure.net/keys/files: "
	)
	cases := map[string]struct {
		file    string
		change  []string
		secret  func(map[string][]byte)
		answers map[string]http.HandlerFunc
		plain   bool // a build without clouds
		is      error
		want    string
		asked   int
	}{
		"no token of Vault":                    {file: "vault.yaml", secret: without("sops.vault-token"), is: sops.ErrService, want: vault + "it takes credentials as sops.vault-token"},
		"a token that Vault refuses":           {file: "vault.yaml", secret: with("sops.vault-token", "other"), is: sops.ErrService, want: vault + "Vault refuses the token of sops.vault-token (HTTP 403): give it one that is valid, with a policy for update of teams/shop/decrypt/flux", asked: 1},
		"a token of two lines":                 {file: "vault.yaml", secret: with("sops.vault-token", "a\nb"), is: sops.ErrService, want: vault + "sops.vault-token is no token"},
		"another key of Vault":                 {file: "vault.yaml", change: []string{"key_name: flux", "key_name: other"}, is: sops.ErrService, want: strings.Replace(vault, "flux", "other", 1) + "Vault has no transit engine at teams/shop, or no key other in it (HTTP 404)", asked: 1},
		"a key that Vault does not open":       {file: "vault.yaml", change: []string{"vault:v1:", "vault:v0:"}, is: sops.ErrService, want: vault + "Vault does not open it (HTTP 400): the key flux of teams/shop is another one, or older than its min_decryption_version", asked: 1},
		"an engine that leads elsewhere":       {file: "vault.yaml", change: []string{"teams/shop", "teams/../sys"}, is: sops.ErrInvalid, want: strings.Replace(vault, "teams/shop", "teams/../sys", 1) + "sops.hc_vault.engine_path or key_name is no name in Vault"},
		"a Vault that is none":                 {file: "vault.yaml", change: []string{"https://vault", "ftp://vault"}, is: sops.ErrInvalid, want: strings.Replace(vault, "https", "ftp", 1) + "sops.hc_vault.vault_address is no https:// or http:// with a host"},
		"a Vault that the Secret does not say": {file: "vault.yaml", secret: with("sops.vault-address", "https://other.example.com"), is: sops.ErrService, want: vault + "its address is not the one of sops.vault-address, which alone gets the token"},
		"a Vault that redirects":               {file: "vault.yaml", answers: map[string]http.HandlerFunc{"vault.example.com:8200": status(307)}, is: sops.ErrService, want: vault + "Vault redirects (HTTP 307), which is not followed with credentials: encrypt for the address that it leads to", asked: 1},
		"a Vault that is sealed":               {file: "vault.yaml", answers: map[string]http.HandlerFunc{"vault.example.com:8200": status(503)}, is: sops.ErrService, want: vault + "Vault cannot answer now (HTTP 503)", asked: 1},
		"a Vault that answers with other text": {file: "vault.yaml", answers: map[string]http.HandlerFunc{"vault.example.com:8200": func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write([]byte("<html>")) }}, is: sops.ErrService, want: vault + "the answer is none of Vault: is it the right port?", asked: 1},
		"an answer that never ends":            {file: "vault.yaml", answers: map[string]http.HandlerFunc{"vault.example.com:8200": func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write(make([]byte, 1<<20)) }}, is: sops.ErrService, want: vault + "the answer of Vault has more than 65536 bytes: is it the right server?", asked: 1},
		"a key that is none": {file: "vault.yaml", answers: map[string]http.HandlerFunc{"vault.example.com:8200": func(out http.ResponseWriter, _ *http.Request) {
			say(out, map[string]any{"data": map[string]string{"plaintext": "YQ=="}})
		}}, is: sops.ErrService, want: vault + "what it answers is no key of a file", asked: 1},

		"a build without clouds":   {file: "aws.yaml", plain: true, is: sops.ErrInvalid, want: aws + "this flotillad was built without -tags clouds: build it with that, or add an age or PGP recipient with sops updatekeys"},
		"no credentials of AWS":    {file: "aws.yaml", secret: without("sops.aws-kms"), is: sops.ErrService, want: aws + "it takes credentials as sops.aws-kms"},
		"what is no credential":    {file: "aws.yaml", secret: with("sops.aws-kms", "a: b"), is: sops.ErrService, want: aws + "sops.aws-kms has to be YAML with aws_access_key_id and aws_secret_access_key, and perhaps aws_session_token"},
		"a wrong secret key":       {file: "aws.yaml", secret: with("sops.aws-kms", strings.Replace(awsCredentials, "secret-of-aws", "x", 1)), is: sops.ErrService, want: aws + "AWS KMS refuses (InvalidSignatureException): aws_secret_access_key in sops.aws-kms is not that of aws_access_key_id: correct it", asked: 1},
		"another context":          {file: "aws.yaml", change: []string{"team: shop", "team: other"}, is: sops.ErrService, want: aws + "AWS KMS refuses (InvalidCiphertextException): it was encrypted for another key, or with another context", asked: 1},
		"an ARN of another host":   {file: "aws.yaml", change: []string{"kms:eu-west-1", "kms:evil.example/"}, is: sops.ErrInvalid, want: strings.Replace(aws, "eu-west-1", "evil.example/", 1) + "sops.kms.arn is no ARN of a key"},
		"a role":                   {file: "aws.yaml", change: []string{"      created_at", "      role: arn:aws:iam::1:role/x\n      created_at"}, is: sops.ErrInvalid, want: aws + "it is to be opened as the role of sops.kms.role, which is not supported: leave the role out, and let the user of sops.aws-kms decrypt"},
		"no service account":       {file: "gcp.yaml", secret: with("sops.gcp-kms", "{}"), is: sops.ErrService, want: gcp + "sops.gcp-kms of the Secret: unusable credentials: it has to be the JSON key of a service account, as gcloud iam service-accounts keys create writes it"},
		"a key that Google denies": {file: "gcp.yaml", answers: map[string]http.HandlerFunc{"oauth2.googleapis.com": status(400)}, is: sops.ErrService, want: gcp + "no token is given out by oauth2.googleapis.com (HTTP 400): correct sops.gcp-kms, or make a new key there", asked: 1},
		"no right to decrypt":      {file: "gcp.yaml", answers: map[string]http.HandlerFunc{"cloudkms.googleapis.com": status(403)}, is: sops.ErrService, want: gcp + "GCP KMS refuses (HTTP 403): let the service account of sops.gcp-kms decrypt with the key (roles/cloudkms.cryptoKeyDecrypter)", asked: 2},
		"a vault elsewhere":        {file: "azure.yaml", change: []string{"shop.vault.azure.net", "shop.vault.azure.net.evil.example"}, is: sops.ErrInvalid, want: strings.Replace(azure, "azure.net", "azure.net.evil.example", 1) + "sops.azure_kv.vault_url is no https://NAME.vault.azure.net, nor one of another cloud of Azure"},
		"a certificate of Azure":   {file: "azure.yaml", secret: with("sops.azure-kv", azureCredentials+"clientCertificate: x\n"), is: sops.ErrService, want: azure + "sops.azure-kv of the Secret: unusable credentials: a clientCertificate is not supported: use a clientSecret"},
		"no right in Azure":        {file: "azure.yaml", answers: map[string]http.HandlerFunc{"shop.vault.azure.net": status(403)}, is: sops.ErrService, want: azure + "Azure Key Vault refuses (HTTP 403): let the application of sops.azure-kv decrypt with the key", asked: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for host, answer := range tc.answers {
				w.answers[host] = answer
			}
			secret := w.secret()
			if tc.secret != nil {
				tc.secret(secret)
			}
			_, err := open(t, w.services(!tc.plain), secret, tc.file, tc.change...)
			if !errors.Is(err, tc.is) || err.Error() != tc.want {
				t.Errorf("error %v\nwant  %s", err, tc.want)
			}
			if asked := w.told(); len(asked) != tc.asked {
				t.Errorf("asked %q, want %d questions", asked, tc.asked)
			}
		})
	}
}

// TestAskedOnce: the same key is asked for once for all files of a revision, and what fails is not asked for ever.
func TestAskedOnce(t *testing.T) {
	w := newWorld(t)
	by, of := w.services(false).For(w.secret()), func(key, wrapped string) sops.Recipient {
		return sops.Recipient{Kind: sops.KindVault, Wrapped: wrapped, Fields: map[string]string{"vault_address": "https://vault.example.com:8200", "engine_path": "teams/shop", "key_name": key}}
	}
	for range 3 {
		if key, err := by.Unwrap(t.Context(), of("flux", "vault:v1:a2V5")); err != nil || string(key) != "key" {
			t.Fatalf("%q, %v", key, err)
		}
	}
	if asked := w.told(); len(asked) != 1 {
		t.Errorf("asked %q, want once", asked)
	}
	var last error
	for i := range 110 {
		other := of(fmt.Sprintf("k%d", i), "vault:v1:a2V5")
		_, last = by.Unwrap(t.Context(), other)
		_, again := by.Unwrap(t.Context(), other)
		if last == nil || again == nil || last.Error() != again.Error() {
			t.Fatalf("%v, %v", last, again)
		}
	}
	if asked := w.told(); len(asked) != 1+100 || last.Error() != "it is not asked, as services have opened none of 100 others of this revision" {
		t.Errorf("asked %d times, the last error is %v", len(asked), last)
	}
}

// TestAServiceThatIsAway is asked once for all files, and others are still asked.
func TestAServiceThatIsAway(t *testing.T) {
	w := newWorld(t)
	w.answers["away.example.com"] = func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusServiceUnavailable) }
	w.answers["oauth2.googleapis.com"] = w.answers["away.example.com"]
	by := w.services(true).For(w.secret())
	vault := func(host, key string) sops.Recipient {
		return sops.Recipient{Kind: sops.KindVault, Wrapped: "vault:v1:a2V5", Fields: map[string]string{"vault_address": "https://" + host, "engine_path": "teams/shop", "key_name": key}}
	}
	google := func(key string) sops.Recipient {
		return sops.Recipient{Kind: sops.KindGCP, Wrapped: "a2V5", Fields: map[string]string{"resource_id": "projects/p/locations/global/keyRings/r/cryptoKeys/" + key}}
	}
	for _, key := range []string{"a", "b", "c"} {
		for want, of := range map[string]sops.Recipient{
			"Vault cannot answer now (HTTP 503)":                         vault("away.example.com", key),
			"ask oauth2.googleapis.com for a token: it answers HTTP 503": google(key),
		} {
			if _, err := by.Unwrap(t.Context(), of); !errors.Is(err, sops.ErrService) || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		}
	}
	if _, err := by.Unwrap(t.Context(), vault("vault.example.com:8200", "flux")); err != nil {
		t.Error(err)
	}
	if asked := w.told(); len(asked) != 3 {
		t.Errorf("asked %q", asked)
	}
}

// TestAddressesThatAreNotAllowed: a file names no address that its owner could not have as a source.
func TestAddressesThatAreNotAllowed(t *testing.T) {
	by := keyservice.New(keyservice.Options{}).For(map[string][]byte{"sops.vault-token": []byte("t")})
	_, err := by.Unwrap(t.Context(), sops.Recipient{Kind: sops.KindVault, Wrapped: "vault:v1:a", Fields: map[string]string{"vault_address": "http://127.0.0.1:8200", "engine_path": "sops", "key_name": "k"}})
	if err == nil || !strings.HasPrefix(err.Error(), "Vault cannot be asked: address not allowed: 127.0.0.1 leads to") {
		t.Errorf("error %v", err)
	}
}
