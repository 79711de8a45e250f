package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

// TestMember: a member is the control plane's address with a path.
func TestMember(t *testing.T) {
	for server, want := range map[string]string{
		"https://hub.example:6443":        "https://hub.example:6443/apis/cluster.karmada.io/v1alpha1/clusters/east/proxy",
		"https://hub.example/behind/this": "https://hub.example/behind/this/apis/cluster.karmada.io/v1alpha1/clusters/east/proxy",
		"https://hub.example/":            "https://hub.example/apis/cluster.karmada.io/v1alpha1/clusters/east/proxy",
		"hub.example:6443":                "http://hub.example:6443/apis/cluster.karmada.io/v1alpha1/clusters/east/proxy",
	} {
		f := &fleet.Flags{Kubeconfig: commandtest.Kubeconfig(t, server, "shop")}
		cfg, err := f.Member("east").ToRESTConfig()
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Host != want {
			t.Errorf("%s: the member is at %s, want %s", server, cfg.Host, want)
		}
		if namespace, _, err := f.Member("east").ToRawKubeConfigLoader().Namespace(); err != nil || namespace != "shop" {
			t.Errorf("namespace %q, %v", namespace, err)
		}
		hub, err := f.Config()
		if err != nil || strings.Contains(hub.Host, "proxy") {
			t.Errorf("the control plane is at %s, %v", hub.Host, err)
		}
	}
}

// TestProxyErrors: what the control plane says in the place of a member is heard
// whoever asks; what a member says goes through.
func TestProxyErrors(t *testing.T) {
	const form = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"%s","reason":"%s","details":{"group":"%s","kind":"%s","name":"%s"},"code":%d}`
	cases := map[string]struct {
		code int
		body string
		want string
	}{
		"no such cluster":    {404, fmt.Sprintf(form, `clusters \"east\" not found`, "NotFound", "cluster.karmada.io", "clusters", "east", 404), "there is no cluster east: flotilla get clusters lists them"},
		"no rights":          {403, fmt.Sprintf(form, "john may not", "Forbidden", "cluster.karmada.io", "clusters", "east", 403), "john may not: ask for the right to do it"},
		"away":               {503, fmt.Sprintf(form, "cluster east: it is away", "ServiceUnavailable", "cluster.karmada.io", "clusters", "east", 503), "cluster east: it is away: flotilla describe cluster east says how it is"},
		"a wrong path":       {400, fmt.Sprintf(form, "cluster east: no dots", "BadRequest", "cluster.karmada.io", "clusters", "east", 400), "cluster east: no dots"},
		"of the member":      {404, fmt.Sprintf(form, `pods \"web\" not found`, "NotFound", "", "pods", "web", 404), `pods "web" not found: flotilla get pods -C east lists what there is`},
		"long and no status": {500, strings.Repeat("x", 100_000), `an error on the server ("`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.code)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			f := &fleet.Flags{Kubeconfig: commandtest.Kubeconfig(t, server.URL, "")}
			cfg, err := f.Member("east").ToRESTConfig()
			if err != nil {
				t.Fatal(err)
			}
			client, err := f.Member("east").KubernetesClientSet()
			if err != nil {
				t.Fatal(cfg, err)
			}
			err = client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/shop/pods/web").Do(t.Context()).Into(&corev1.Pod{})
			got := fleet.DescribeOf("east", err)
			if got == nil || !strings.HasPrefix(got.Error(), tc.want) {
				t.Errorf("it says %v, want %s", got, tc.want)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	cases := map[string]struct {
		server string
		err    error
		want   string
	}{
		"an object that is not there": {"", apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web"), `deployments.apps "web" not found: flotilla get deployments.apps lists what there is`},
		"no rights": {"", apierrors.NewForbidden(pods, "web", errors.New(`User "john" cannot delete resource "pods" in API group "" in the namespace "shop"`)),
			`pods "web" is forbidden: User "john" cannot delete resource "pods" in API group "" in the namespace "shop": ask for the right to do it`},
		"no rights to a path": {"", apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(`User "john" cannot get path "/metrics"`)), `forbidden: User "john" cannot get path "/metrics": ask for the right to do it`},
		"something that is protected, whoever asks": {"", apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "shop", errors.New("This resource is protected, please make sure to remove the label: resourcetemplate.karmada.io/deletion-protected")),
			`namespaces "shop" is forbidden: This resource is protected, please make sure to remove the label: resourcetemplate.karmada.io/deletion-protected`},
		"a quota that is used up": {"", apierrors.NewForbidden(pods, "web", errors.New("exceeded quota: small")), `pods "web" is forbidden: exceeded quota: small`},
		"several, as kubectl has them": {"", utilerrors.NewAggregate([]error{apierrors.NewNotFound(pods, "a"), apierrors.NewNotFound(pods, "b")}),
			"pods \"a\" not found: flotilla get pods lists what there is\npods \"b\" not found: flotilla get pods lists what there is"},
		"no kind":             {"", errors.New(`the server doesn't have a resource type "boat"`), `the control plane knows no kind "boat": flotilla api-resources lists them`},
		"no kind in a member": {"east", &meta.NoResourceMatchError{PartialResource: schema.GroupVersionResource{Resource: "boat"}}, `cluster east knows no kind "boat": flotilla api-resources -C east lists them`},
		"no version in a member": {"east", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "g", Kind: "Boat"}, SearchedVersions: []string{"v9"}},
			`cluster east does not serve it (no matches for kind "Boat" in version "g/v9"): flotilla api-resources -C east lists what it serves`},
		"no control plane at all": {"", &url.Error{Op: "Get", URL: "http://localhost:8080/api?timeout=32s", Err: errors.New("connection refused")},
			"no control plane is known, and none answers at http://localhost:8080: --kubeconfig names the file that leads to it"},
		"a control plane that is stopped": {"", &url.Error{Op: "Get", URL: "https://127.0.0.1:6443/api", Err: errors.New("connection refused")},
			"no control plane answers at https://127.0.0.1:6443: connection refused; see whether flotillad serve runs there, or --kubeconfig names the file that leads elsewhere"},
		"something else": {"", errors.New("the moon is full"), "the moon is full"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := fleet.DescribeOf(tc.server, tc.err); got.Error() != tc.want {
				t.Errorf("it says\n%v\nwant\n%s", got, tc.want)
			}
		})
	}
	if fleet.Describe(nil) != nil || !errors.Is(fleet.Describe(context.Canceled), context.Canceled) {
		t.Error("nothing and an interruption do not stay what they are")
	}
}

// TestEach: clusters are asked concurrently; one that hangs delays no other.
func TestEach(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	release := make(chan struct{})
	defer close(release)
	var others sync.WaitGroup
	others.Add(2)
	go func() { // the user has enough once the others have answered
		others.Wait()
		cancel()
	}()
	broken := errors.New("broken")
	answers := fleet.Each(ctx, []string{"hangs", "works", "breaks"}, func(_ context.Context, cluster string) (int, error) {
		switch cluster {
		case "hangs":
			<-release
			return 0, nil
		case "breaks":
			defer others.Done()
			return 0, broken
		default:
			defer others.Done()
			return len(cluster), nil
		}
	})
	if answers[0].Cluster != "hangs" || !errors.Is(answers[0].Err, context.Canceled) {
		t.Errorf("the one that hangs: %+v", answers[0])
	}
	// Those that have answered may still be cut off by the interruption.
	if a := answers[1]; a.Cluster != "works" || a.Err == nil && a.Value != len("works") {
		t.Errorf("the one that works: %+v", a)
	}
	if a := answers[2]; a.Cluster != "breaks" || !errors.Is(a.Err, broken) && !errors.Is(a.Err, context.Canceled) {
		t.Errorf("the one that breaks: %+v", a)
	}
}

func TestScope(t *testing.T) {
	cases := map[string]struct {
		args []string
		one  string
		code int
	}{
		"the control plane": {nil, "", 0},
		"said so":           {[]string{"-s", "karmada"}, "", 0},
		"a cluster":         {[]string{"-C", "east"}, "east", 0},
		"in other words":    {[]string{"--cluster=east", "-s", "members"}, "east", 0},
		"no cluster":        {[]string{"-s", "members"}, "", 2},
		"two clusters":      {[]string{"--clusters", "east,west"}, "", 2},
		"both":              {[]string{"-s", "karmada", "-C", "east"}, "", 2},
		"not here":          {[]string{"-s", "all"}, "", 2},
		"left out":          {[]string{"-C", ""}, "", 2},
		"left out of two":   {[]string{"-C", "east,"}, "", 2},
		"no name":           {[]string{"-C", "../east"}, "", 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var scope fleet.Scope
			got := ""
			cmd := &cobra.Command{Use: "look", RunE: func(*cobra.Command, []string) (err error) {
				got, err = scope.One()
				return err
			}}
			scope.AddTo(cmd, &fleet.Flags{}, fleet.ScopeHub, fleet.ScopeMembers)
			cmd.SetArgs(append([]string{}, tc.args...))
			cmd.SetErr(io.Discard)
			if code := command.Run(t.Context(), cmd); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if diff := cmp.Diff(tc.one, got); diff != "" {
				t.Errorf("server (-want +got):\n%s", diff)
			}
		})
	}
}

// TestInterrupt: what reads and takes no context ends with the call; what takes
// back what was begun does not.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			close(asked)
			<-release
		}
	}))
	defer server.Close()
	defer close(release)
	f := &fleet.Flags{Kubeconfig: commandtest.Kubeconfig(t, server.URL, "")}
	f.Interrupt(ctx)
	client, err := f.Factory().RESTClient()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-asked
		cancel()
	}()
	later := context.WithoutCancel(ctx)
	if err := client.Get().AbsPath("/api").Do(later).Error(); !errors.Is(err, context.Canceled) {
		t.Errorf("reading ends with %v", err)
	}
	if err := client.Delete().AbsPath("/api").Do(later).Error(); err != nil {
		t.Errorf("taking back ends with %v", err)
	}
}
