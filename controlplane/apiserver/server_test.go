package apiserver_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/controlplane/apiserver"
	"github.com/flotilla-io/flotilla/controlplane/etcd"
	"github.com/flotilla-io/flotilla/controlplane/pki"
)

// A plain is a server without extension, as a member has it.
type plain struct {
	store   *etcd.Server
	pki     *pki.Store
	server  *apiserver.Server
	started time.Duration
	up      func() // lets all come
}

func TestPlainServer(t *testing.T) {
	dir := tempDir(t)
	var revision int64
	t.Run("first start", func(t *testing.T) {
		p := start(t, dir)
		t.Logf("serving after %v", p.started)
		checkStarting(t, p)
		checkVersion(t, p)
		checkServiceAccountToken(t, p)
		checkAnonymous(t, p)
		checkKubeconfig(t, p, filepath.Join(dir, "kubeconfig"))
		revision = p.quietRevision(t)
	})
	t.Run("second start writes nothing", func(t *testing.T) {
		p := start(t, dir)
		t.Logf("serving after %v", p.started)
		p.up()
		if got := p.quietRevision(t); got != revision {
			t.Errorf("restart moved the revision by %d", got-revision)
		}
	})
}

// TestKubernetesVersion holds the version that is shown to the one that is built.
func TestKubernetesVersion(t *testing.T) {
	content, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	module, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, require := range module.Require {
		if require.Mod.Path == "k8s.io/kubernetes" && require.Mod.Version != apiserver.KubernetesVersion {
			t.Errorf("go.mod requires %s, KubernetesVersion is %s", require.Mod.Version, apiserver.KubernetesVersion)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	cases := map[string]apiserver.Options{
		"a missing data directory": {},
		"missing certificates":     {DataDir: "x"},
		"a missing store":          {DataDir: "x", PKI: &pki.Store{}},
		"a host name to bind to":   {DataDir: "x", PKI: &pki.Store{}, Etcd: apiserver.Etcd{Servers: []string{"x"}}, BindAddress: "localhost"},
	}
	for name, opts := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := apiserver.New(t.Context(), opts); err == nil {
				t.Error("no error")
			}
		})
	}
}

func checkVersion(t *testing.T, p *plain) {
	t.Helper()
	info, err := p.client(t, p.server.LoopbackConfig()).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := utilversion.ParseSemantic(info.GitVersion); err != nil || info.Major != "1" || info.Minor != "36" {
		t.Errorf("version %+v cannot be parsed: %v", info, err)
	}
}

func checkServiceAccountToken(t *testing.T, p *plain) {
	t.Helper()
	hub := p.client(t, p.server.LoopbackConfig())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	if _, err := hub.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := hub.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: p.server.URL(), BearerToken: token.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAFile: p.pki.CAFile()}}
	review, err := p.client(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := review.Status.UserInfo.Username, "system:serviceaccount:default:robot"; got != want {
		t.Errorf("token speaks for %q, want %q", got, want)
	}
}

// checkStarting lets all come, who were told before to come again.
func checkStarting(t *testing.T, p *plain) {
	t.Helper()
	config := &rest.Config{Host: p.server.URL(), TLSClientConfig: rest.TLSClientConfig{CAFile: p.pki.CAFile()}}
	raw, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"/readyz":                    http.StatusOK,
		"/livez":                     http.StatusOK,
		"/version":                   http.StatusOK,
		"/api/v1/namespaces/default": http.StatusServiceUnavailable,
		"/apis":                      http.StatusServiceUnavailable,
		"/openapi/v3":                http.StatusServiceUnavailable,
	} {
		for _, token := range []string{"", "Bearer ", "Bearer x"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.server.URL()+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if want != http.StatusOK { // who is wrong about himself is told so
				request.Header.Set("Authorization", token)
			}
			answer, err := raw.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s with %q answers %d while the server starts, want %d", path, token, answer.StatusCode, want)
			}
		}
	}
	if _, err := p.client(t, p.server.LoopbackConfig()).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a client inside: %v", err)
	}
	up := sync.OnceFunc(p.up)
	config.BearerToken = "x"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil && answer.StatusCode == http.StatusServiceUnavailable {
				up()
			}
			return answer, err
		})
	})
	if _, err := p.client(t, config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a client that came too early does not ask again: %v", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (rt roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return rt(r) }

func checkAnonymous(t *testing.T, p *plain) {
	t.Helper()
	config := &rest.Config{Host: p.server.URL(), TLSClientConfig: rest.TLSClientConfig{CAFile: p.pki.CAFile()}}
	anonymous := p.client(t, config)
	for path, want := range map[string]int{
		"/readyz": http.StatusOK,
		"/api":    http.StatusUnauthorized,
		"/api/v1/namespaces/kube-public/configmaps/cluster-info": http.StatusForbidden,
	} {
		status := 0
		anonymous.Discovery().RESTClient().Get().AbsPath(path).Do(t.Context()).StatusCode(&status)
		if status != want {
			t.Errorf("%s without credentials answers %d, want %d", path, status, want)
		}
	}
}

func checkKubeconfig(t *testing.T, p *plain, path string) {
	t.Helper()
	err := p.pki.WriteKubeconfig(path, pki.Kubeconfig{Context: "plain", Server: p.server.URL(), Identity: pki.Identity{User: "admin", Groups: []string{"system:masters"}}})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.client(t, config).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("administrator: %v", err)
	}
}

// start runs a server until the test ends.
func start(t *testing.T, dir string) *plain {
	t.Helper()
	begin := time.Now()
	up := make(chan struct{})
	p := &plain{up: func() { close(up) }}
	var err error
	if p.store, err = etcd.Start(t.Context(), etcd.Options{DataDir: filepath.Join(dir, "etcd"), UnsafeNoFsync: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.store.Stop)
	if p.pki, err = pki.Open(filepath.Join(dir, "pki"), clock.RealClock{}); err != nil {
		t.Fatal(err)
	}
	if p.server, err = apiserver.New(t.Context(), apiserver.Options{
		DataDir: dir, PKI: p.pki, Etcd: apiserver.Etcd{Servers: p.store.Endpoints()}, Requests: apiserver.Requests{Up: up},
	}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("server ended: %v", err)
		}
	})
	wait, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := p.server.WaitServing(wait); err != nil {
		t.Fatal(err)
	}
	p.started = time.Since(begin)
	return p
}

// quietRevision is the store's revision once two looks in a row, some requests
// apart, agree.
func (p *plain) quietRevision(t *testing.T) int64 {
	t.Helper()
	hub := p.client(t, p.server.LoopbackConfig())
	last, same := int64(-1), 0
	for same < 20 {
		now, err := p.store.Revision(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if now == last {
			same++
		} else {
			last, same = now, 0
		}
		for range 10 {
			if _, err := hub.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
	}
	return last
}

func (p *plain) client(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "apiserver-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
