package cloudlogin_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/cloudlogin"
	"github.com/flotilla-io/flotilla/sources/sigv4"
)

const (
	canary   = "CANARY-5512"
	amazon   = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
	china    = "123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn"
	google   = "europe-docker.pkg.dev"
	registry = "shop.azurecr.io"
)

var start = time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)

// cloud answers for all hosts of all clouds: by "METHOD host/path", a status and a body, and not found for all else.
type cloud struct {
	mu      sync.Mutex
	answers map[string]answer
	asked   []request
	server  *httptest.Server
}

type answer struct {
	status int
	body   string
}

// request is what was sent, less what the client of HTTP adds.
type request struct {
	To, Body string
	Header   http.Header
}

func newCloud(t *testing.T, answers map[string]answer) *cloud {
	t.Helper()
	return newCloudOver(t, &tls.Config{}, answers)
}

// newCloudOver returns a cloud that speaks TLS as configured.
func newCloudOver(t *testing.T, over *tls.Config, answers map[string]answer) *cloud {
	t.Helper()
	c := &cloud{answers: answers}
	c.server = httptest.NewUnstartedServer(c)
	c.server.TLS = over
	c.server.StartTLS()
	t.Cleanup(c.server.Close)
	return c
}

// ServeHTTP implements http.Handler.
func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, name := range []string{"Accept-Encoding", "User-Agent", "Content-Length"} {
		r.Header.Del(name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	to := r.Method + " " + r.Host + r.URL.Path
	c.asked = append(c.asked, request{to, string(body), r.Header})
	said, found := c.answers[to]
	if !found {
		said.status = http.StatusNotFound
	}
	if said.status/100 == 3 {
		w.Header().Set("Location", "https://elsewhere.test/")
	}
	w.WriteHeader(said.status)
	_, _ = io.WriteString(w, said.body)
}

// way trusts the cloud, for which all hosts have its certificate.
func (c *cloud) way() egress.Way {
	pool := x509.NewCertPool()
	pool.AddCert(c.server.Certificate())
	return egress.Way{TLS: &tls.Config{RootCAs: pool, ServerName: "example.com", MinVersion: tls.VersionTLS12}}
}

// dialer finds all hosts at the cloud.
func (c *cloud) dialer() egress.Dialer {
	return egress.Dialer{
		LookupNetIP: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("203.0.114.7")}, nil
		},
		Machine: func() ([]netip.Addr, error) { return nil, nil },
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, c.server.Listener.Addr().String())
		},
	}
}

var (
	ofAmazon = map[string][]byte{"accesskey": []byte("AKIA1\n"), "secretkey": []byte(canary)}
	ofAzure  = map[string][]byte{"tenantId": []byte("t-1"), "clientId": []byte("c-1"), "clientSecret": []byte(canary + "\n")}
)

const (
	amazonServer = "POST api.ecr.eu-central-1.amazonaws.com/"
	googleServer = "POST oauth2.googleapis.com/token"
	azureServer  = "POST login.microsoftonline.com/t-1/oauth2/v2.0/token"
	exchanged    = "POST shop.azurecr.io/oauth2/exchange"
)

func form(values ...string) string {
	out := url.Values{}
	for i := 0; i < len(values); i += 2 {
		out.Set(values[i], values[i+1])
	}
	return out.Encode()
}

// TestAmazon: ECR is asked with a signature of the keys, at the host of the registry's region.
func TestAmazon(t *testing.T) {
	for host, server := range map[string]string{
		amazon: "api.ecr.eu-central-1.amazonaws.com", china: "api.ecr.cn-north-1.amazonaws.com.cn",
		"123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com": "api.ecr.us-gov-west-1.amazonaws.com",
	} {
		c := newCloud(t, map[string]answer{"POST " + server + "/": {200, fmt.Sprintf(`{"authorizationData": [{"authorizationToken": "QVdTOnB3", "expiresAt": %d.5, "proxyEndpoint": "https://elsewhere.test"}]}`, start.Add(time.Hour).Unix())}})
		logins := cloudlogin.New(c.dialer(), clocktesting.NewFakePassiveClock(start))
		got, err := logins.Registry(t.Context(), cloudlogin.Question{Provider: cloudlogin.Amazon, Host: host, Secret: ofAmazon, Way: c.way()})
		if diff := cmp.Diff(cloudlogin.Login{Username: "AWS", Password: "pw"}, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", host, err, diff)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+server+"/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-amz-json-1.1")
		req.Header.Set("X-Amz-Target", "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken")
		sigv4.Sign(req, []byte("{}"), sigv4.Keys{ID: "AKIA1", Secret: canary}, sigv4.Scope{Region: strings.Split(server, ".")[2], Service: "ecr"}, start)
		if diff := cmp.Diff([]request{{"POST " + server + "/", "{}", req.Header}}, c.asked); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", host, diff)
		}
	}
}

// TestCodeCommit: the password is signed for the repository, and nothing is asked. It is used until five minutes before its end.
func TestCodeCommit(t *testing.T) {
	c := newCloud(t, nil)
	clock := clocktesting.NewFakePassiveClock(start)
	logins := cloudlogin.New(c.dialer(), clock)
	keys := sigv4.Keys{ID: "AKIA1", Secret: canary}
	for host, region := range map[string]string{"git-codecommit.eu-central-1.amazonaws.com": "eu-central-1", "git-codecommit.cn-north-1.amazonaws.com.cn": "cn-north-1"} {
		clock.SetTime(start)
		q := cloudlogin.Question{Provider: cloudlogin.Amazon, Host: host, Path: "/v1/repos/fleet", Secret: ofAmazon}
		for after, signed := range map[time.Duration]time.Duration{0: 0, 9 * time.Minute: 0, 10 * time.Minute: 10 * time.Minute} {
			_, err := logins.Git(t.Context(), q) // what is kept
			clock.SetTime(start.Add(after))
			got, err2 := logins.Git(t.Context(), q)
			want := cloudlogin.Login{Username: "AKIA1", Password: sigv4.GitPassword(keys, host, q.Path, region, start.Add(signed))}
			if diff := cmp.Diff(want, got); err != nil || err2 != nil || diff != "" {
				t.Errorf("%s after %s: %v, %v (-want +got):\n%s", host, after, err, err2, diff)
			}
			logins.Forget(q)
			clock.SetTime(start)
		}
	}
	if len(c.asked) != 0 {
		t.Errorf("asked %v", c.asked)
	}
}

// TestGoogle: the password is a token for what a service account may do.
func TestGoogle(t *testing.T) {
	key, secret := serviceAccount(t)
	for _, host := range []string{google, "gcr.io", "eu.gcr.io"} {
		c := newCloud(t, map[string]answer{googleServer: {200, `{"access_token": "ya29.1", "expires_in": 3599}`}})
		logins := cloudlogin.New(c.dialer(), clocktesting.NewFakePassiveClock(start))
		got, err := logins.Registry(t.Context(), cloudlogin.Question{Provider: cloudlogin.Google, Host: host, Secret: secret, Way: c.way()})
		if diff := cmp.Diff(cloudlogin.Login{Username: "oauth2accesstoken", Password: "ya29.1"}, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", host, err, diff)
		}
		if len(c.asked) != 1 {
			t.Fatalf("%s: asked %v", host, c.asked)
		}
		sent, err := url.ParseQuery(c.asked[0].Body)
		if err != nil || sent.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
			t.Errorf("%s: sent %v, %v", host, sent, err)
		}
		if diff := cmp.Diff(map[string]any{
			"iss": "reader@shop.test", "scope": "https://www.googleapis.com/auth/cloud-platform", "aud": "https://oauth2.googleapis.com/token",
			"iat": float64(start.Unix()), "exp": float64(start.Add(10 * time.Minute).Unix()),
		}, claims(t, key, sent.Get("assertion"))); diff != "" {
			t.Errorf("%s: claims (-want +got):\n%s", host, diff)
		}
	}
}

// TestAzure: the registry exchanges a token of Azure for one of its own; Azure DevOps takes Azure's.
func TestAzure(t *testing.T) {
	c := newCloud(t, map[string]answer{
		azureServer: {200, `{"access_token": "aad", "expires_in": 3599}`}, exchanged: {200, `{"refresh_token": "acr"}`},
		"POST login.partner.microsoftonline.cn/t-1/oauth2/v2.0/token": {200, `{"access_token": "aad-cn", "expires_in": 3599}`},
		"POST shop.azurecr.cn/oauth2/exchange":                        {200, `{"refresh_token": "acr-cn"}`},
	})
	logins := cloudlogin.New(c.dialer(), clocktesting.NewFakePassiveClock(start))
	asked := func(scope string) string {
		return form("grant_type", "client_credentials", "client_id", "c-1", "client_secret", canary, "scope", scope)
	}
	of := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	for _, tc := range []struct {
		host string
		by   func(context.Context, cloudlogin.Question) (cloudlogin.Login, error)
		want cloudlogin.Login
		sent []request
	}{
		{registry, logins.Registry, cloudlogin.Login{Refresh: "acr"}, []request{
			{azureServer, asked("https://containerregistry.azure.net/.default"), of},
			{exchanged, form("grant_type", "access_token", "service", registry, "tenant", "t-1", "access_token", "aad"), of},
		}},
		{"shop.azurecr.cn", logins.Registry, cloudlogin.Login{Refresh: "acr-cn"}, []request{
			{"POST login.partner.microsoftonline.cn/t-1/oauth2/v2.0/token", asked("https://management.chinacloudapi.cn/.default"), of},
			{"POST shop.azurecr.cn/oauth2/exchange", form("grant_type", "access_token", "service", "shop.azurecr.cn", "tenant", "t-1", "access_token", "aad-cn"), of},
		}},
		{"dev.azure.com", logins.Git, cloudlogin.Login{Bearer: "aad"}, []request{{azureServer, asked("499b84ac-1321-427f-aa17-267ca6975798/.default"), of}}},
		{"acme.visualstudio.com", logins.Git, cloudlogin.Login{Bearer: "aad"}, []request{{azureServer, asked("499b84ac-1321-427f-aa17-267ca6975798/.default"), of}}},
	} {
		c.asked = nil
		got, err := tc.by(t.Context(), cloudlogin.Question{Provider: cloudlogin.Azure, Host: tc.host, Secret: ofAzure, Way: c.way()})
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tc.host, err, diff)
		}
		if diff := cmp.Diff(tc.sent, c.asked); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", tc.host, diff)
		}
	}
}

// TestKept: a login is used until five minutes before its end, and for an hour at most; until a host refuses it; and for one host.
func TestKept(t *testing.T) {
	ends := start.Add(12 * time.Hour).Unix()
	c := newCloud(t, map[string]answer{amazonServer: {200, fmt.Sprintf(`{"authorizationData": [{"authorizationToken": "QVdTOnB3", "expiresAt": %d}]}`, ends)}})
	clock := clocktesting.NewFakePassiveClock(start)
	logins := cloudlogin.New(c.dialer(), clock)
	q := cloudlogin.Question{Provider: cloudlogin.Amazon, Host: amazon, Secret: ofAmazon, Way: c.way()}
	for _, step := range []struct {
		name   string
		change func()
		want   int
	}{
		{"at first", func() {}, 1},
		{"again", func() {}, 1},
		{"before the end of the hour", func() { clock.SetTime(start.Add(54 * time.Minute)) }, 1},
		{"at the end of the hour", func() { clock.SetTime(start.Add(55 * time.Minute)) }, 2},
		{"refused", func() { logins.Forget(q) }, 3},
		{"by others", func() { q.Secret = map[string][]byte{"accesskey": []byte("AKIA2"), "secretkey": []byte("s")} }, 4},
		{"for another registry", func() { q.Host = "2" + q.Host[1:] }, 5},
	} {
		step.change()
		if _, err := logins.Registry(t.Context(), q); err != nil || len(c.asked) != step.want {
			t.Errorf("%s: asked %d times, want %d, %v", step.name, len(c.asked), step.want, err)
		}
	}
}

// TestRefused names what is wrong and what to do, shows nothing of a secret or an answer, and sends credentials to nobody else.
func TestRefused(t *testing.T) {
	_, account := serviceAccount(t)
	ok := answer{200, `{"access_token": "aad", "expires_in": 3599}`}
	for name, tc := range map[string]struct {
		q       cloudlogin.Question
		git     bool
		answers map[string]answer
		is      error
		want    string
	}{
		"another host, of Amazon":   {q: cloudlogin.Question{Provider: "aws", Host: amazon + ".evil.test", Secret: ofAmazon}, is: cloudlogin.ErrHost, want: "unusable address: " + amazon + ".evil.test is no ACCOUNT.dkr.ecr.REGION.amazonaws.com, which alone gets a login of AWS"},
		"another host, of Google":   {q: cloudlogin.Question{Provider: "gcp", Host: "evil.test", Secret: account}, is: cloudlogin.ErrHost, want: "unusable address: evil.test is no LOCATION-docker.pkg.dev, which alone gets a login of Google"},
		"another host, of Azure":    {q: cloudlogin.Question{Provider: "azure", Host: "azurecr.io.evil.test", Secret: ofAzure}, is: cloudlogin.ErrHost, want: "unusable address: azurecr.io.evil.test is no REGISTRY.azurecr.io, which alone gets a login of Azure"},
		"another port, of Azure":    {q: cloudlogin.Question{Provider: "azure", Host: registry + ":8443", Secret: ofAzure}, is: cloudlogin.ErrHost, want: "unusable address: shop.azurecr.io:8443 is no REGISTRY.azurecr.io, which alone gets a login of Azure"},
		"another Git server":        {q: cloudlogin.Question{Provider: "azure", Host: "git.evil.test", Secret: ofAzure}, git: true, is: cloudlogin.ErrHost, want: "unusable address: git.evil.test is not dev.azure.com, which alone gets a login of Azure"},
		"another one, of Amazon":    {q: cloudlogin.Question{Provider: "aws", Host: "git-codecommit.eu-central-1.amazonaws.com.evil.test", Secret: ofAmazon}, git: true, is: cloudlogin.ErrHost, want: "unusable address: git-codecommit.eu-central-1.amazonaws.com.evil.test is no git-codecommit.REGION.amazonaws.com, which alone gets a login of AWS"},
		"half a key, for Git":       {q: cloudlogin.Question{Provider: "aws", Host: "git-codecommit.eu-central-1.amazonaws.com", Secret: map[string][]byte{"secretkey": []byte(canary)}}, git: true, is: cloudlogin.ErrCredentials, want: "unusable credentials: it takes accesskey and secretkey"},
		"a cloud without Git":       {q: cloudlogin.Question{Provider: "gcp", Host: "dev.azure.com", Secret: account}, git: true, is: cloudlogin.ErrHost, want: `unusable address: nothing of "gcp" is known`},
		"a key without its secret":  {q: cloudlogin.Question{Provider: "aws", Host: amazon, Secret: map[string][]byte{"accesskey": []byte(canary)}}, is: cloudlogin.ErrCredentials, want: "unusable credentials: it takes accesskey and secretkey"},
		"a key in two lines":        {q: cloudlogin.Question{Provider: "aws", Host: amazon, Secret: map[string][]byte{"accesskey": []byte("a\nb"), "secretkey": []byte(canary)}}, is: cloudlogin.ErrCredentials, want: "unusable credentials: it takes accesskey and secretkey"},
		"no account":                {q: cloudlogin.Question{Provider: "gcp", Host: google, Secret: map[string][]byte{"serviceaccount": []byte(canary)}}, is: cloudlogin.ErrCredentials, want: "serviceaccount: unusable credentials: it has to be the JSON key of a service account, as gcloud iam service-accounts keys create writes it"},
		"no application":            {q: cloudlogin.Question{Provider: "azure", Host: registry, Secret: map[string][]byte{"tenantId": []byte("../" + canary), "clientId": []byte("c"), "clientSecret": []byte("s")}}, is: cloudlogin.ErrCredentials, want: "unusable credentials: it takes tenantId, clientId and clientSecret"},
		"a certificate":             {q: cloudlogin.Question{Provider: "azure", Host: registry, Secret: map[string][]byte{"tenantId": []byte("t"), "clientId": []byte("c"), "clientCertificate": []byte(canary)}}, is: cloudlogin.ErrCredentials, want: "unusable credentials: a clientCertificate is not supported: use a clientSecret"},
		"a user without the right":  {q: cloudlogin.Question{Provider: "aws", Host: amazon, Secret: ofAmazon}, answers: map[string]answer{amazonServer: {400, `{"__type": "com.amazonaws#AccessDeniedException", "message": "` + canary + `"}`}}, is: cloudlogin.ErrRefused, want: "no token is given out by api.ecr.eu-central-1.amazonaws.com (AccessDeniedException): let the user of accesskey do ecr:GetAuthorizationToken"},
		"something unknown":         {q: cloudlogin.Question{Provider: "aws", Host: amazon, Secret: ofAmazon}, answers: map[string]answer{amazonServer: {400, canary}}, is: cloudlogin.ErrRefused, want: "no token is given out by api.ecr.eu-central-1.amazonaws.com (HTTP 400): check accesskey and secretkey in the Secret"},
		"a redirect":                {q: cloudlogin.Question{Provider: "aws", Host: amazon, Secret: ofAmazon}, answers: map[string]answer{amazonServer: {307, ""}}, is: cloudlogin.ErrRefused, want: "no token is given out by api.ecr.eu-central-1.amazonaws.com (HTTP 307): check accesskey and secretkey in the Secret"},
		"a fault of Amazon":         {q: cloudlogin.Question{Provider: "aws", Host: amazon, Secret: ofAmazon}, answers: map[string]answer{amazonServer: {503, canary}}, want: "ask api.ecr.eu-central-1.amazonaws.com for a login: it answers HTTP 503"},
		"no login in the answer":    {q: cloudlogin.Question{Provider: "aws", Host: amazon, Secret: ofAmazon}, answers: map[string]answer{amazonServer: {200, `{"authorizationData": [{"authorizationToken": "Y29sb24="}]}`}}, is: egress.ErrAnswer, want: "ask api.ecr.eu-central-1.amazonaws.com for a login: the answer makes no sense: is this the right server, and the right port?"},
		"an account that is gone":   {q: cloudlogin.Question{Provider: "gcp", Host: google, Secret: account}, answers: map[string]answer{googleServer: {400, canary}}, is: cloudlogin.ErrRefused, want: "no token is given out by oauth2.googleapis.com (HTTP 400): put the key of a service account that is there into the Secret"},
		"an application unknown":    {q: cloudlogin.Question{Provider: "azure", Host: registry, Secret: ofAzure}, answers: map[string]answer{azureServer: {401, canary}}, is: cloudlogin.ErrRefused, want: "no token is given out by login.microsoftonline.com (HTTP 401): correct tenantId, clientId and clientSecret in the Secret"},
		"an application not let in": {q: cloudlogin.Question{Provider: "azure", Host: registry, Secret: ofAzure}, answers: map[string]answer{azureServer: ok, exchanged: {401, canary}}, is: cloudlogin.ErrRefused, want: "no token is given out by shop.azurecr.io (HTTP 401): give the application of the Secret the role AcrPull there"},
		"a registry that has none":  {q: cloudlogin.Question{Provider: "azure", Host: registry, Secret: ofAzure}, answers: map[string]answer{azureServer: ok, exchanged: {200, `{"refresh_token": "a\nb"}`}}, is: egress.ErrAnswer, want: "ask shop.azurecr.io for a login: the answer makes no sense: is this the right server, and the right port?"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t, tc.answers)
			logins := cloudlogin.New(c.dialer(), clocktesting.NewFakePassiveClock(start))
			get := logins.Registry
			if tc.git {
				get = logins.Git
			}
			tc.q.Way = c.way()
			login, err := get(t.Context(), tc.q)
			if err == nil || err.Error() != tc.want || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("%v\nwant %s", err, tc.want)
			}
			if shown := fmt.Sprintf("%v %#v", login, login); shown != "(login) (login)" {
				t.Errorf("it prints as %s", shown)
			}
			if tc.answers == nil && len(c.asked) != 0 {
				t.Errorf("asked %v", c.asked)
			}
			if slices.ContainsFunc(c.asked, func(r request) bool { return strings.Contains(r.To, "elsewhere") }) {
				t.Errorf("a redirect was followed: %v", c.asked)
			}
		})
	}
}

// TestOverTLSOnly: the cloud's certificate is checked, and a client's certificate is not shown.
func TestOverTLSOnly(t *testing.T) {
	var shown atomic.Bool
	c := newCloudOver(t, &tls.Config{
		ClientAuth: tls.RequestClientCert,
		VerifyConnection: func(state tls.ConnectionState) error {
			shown.CompareAndSwap(false, len(state.PeerCertificates) > 0)
			return nil
		},
	}, nil)
	q := cloudlogin.Question{Provider: cloudlogin.Azure, Host: registry, Secret: ofAzure}
	_, err := cloudlogin.New(c.dialer(), clocktesting.NewFakePassiveClock(start)).Registry(t.Context(), q)
	if !errors.Is(err, egress.ErrCertificate) || len(c.asked) != 0 {
		t.Errorf("%v, after %v", err, c.asked)
	}
	q.Way = c.way()
	q.Way.TLS.Certificates = []tls.Certificate{c.server.TLS.Certificates[0]}
	_, err = cloudlogin.New(c.dialer(), clocktesting.NewFakePassiveClock(start)).Registry(t.Context(), q)
	if !errors.Is(err, cloudlogin.ErrRefused) || shown.Load() || len(c.asked) == 0 {
		t.Errorf("%v, after %v; shown: %t", err, c.asked, shown.Load())
	}
}

// TestKeys: Secrets are told apart by their keys.
func TestKeys(t *testing.T) {
	type of struct{ amazon, azure, docker bool }
	for provider, want := range map[string]of{cloudlogin.Amazon: {amazon: true}, cloudlogin.Google: {}, cloudlogin.Azure: {azure: true}, "generic": {}} {
		got := of{cloudlogin.In(provider, ofAmazon), cloudlogin.In(provider, ofAzure), cloudlogin.In(provider, map[string][]byte{".dockerconfigjson": nil})}
		if got != want {
			t.Errorf("%s: %+v, want %+v", provider, got, want)
		}
	}
}

// serviceAccount returns the Secret of one, and its key.
func serviceAccount(t *testing.T) (*rsa.PrivateKey, map[string][]byte) {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "reader@shop.test", "private_key_id": canary,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return private, map[string][]byte{"serviceaccount": bytes.TrimSpace(text)}
}
