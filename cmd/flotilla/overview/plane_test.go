package overview

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/disk"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// behind is a world whose control plane is behind handler, which next leads to.
func behind(t *testing.T, env *servertest.Env, handler func(next http.Handler) http.Handler) *world {
	t.Helper()
	transport, err := rest.TransportFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(env.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(handler(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(address) },
		Transport: transport,
	}))
	t.Cleanup(front.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["front"] = &clientcmdapi.Cluster{Server: front.URL}
	config.Contexts["front"] = &clientcmdapi.Context{Cluster: "front"}
	config.CurrentContext = "front"
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return &world{env: &servertest.Env{Kubeconfig: kubeconfig}, cache: t.TempDir()}
}

// What the control plane says of itself beside its answers is the first thing that
// a status shows.
func TestStatusShowsThatNothingIsStored(t *testing.T) {
	notice := disk.Notice + ": its disk has 12Mi free, and it needs 160Mi"
	w := behind(t, hubs.Env(t), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if notice != "" {
				rw.Header().Add("Warning", `299 - "`+notice+`"`)
			}
			next.ServeHTTP(rw, r)
		})
	})
	result := w.call(t.Context(), "status --check")
	if result.Code == 0 || !strings.Contains(result.Out, notice+"; what is said of the fleet may be from before") || !strings.Contains(result.Out, "make room on the disk") {
		t.Errorf("status on a full disk: %s", result)
	}
	notice = ""
	if result := w.call(t.Context(), "status --check"); result.Code != 0 {
		t.Errorf("status with room again: %s", result)
	}
}

// TestNobodyLeads: a control plane whose loops run elsewhere, or in none of its
// replicas, does not say that all is well, nor that it was not set back.
func TestNobodyLeads(t *testing.T) {
	env := hubs.Env(t)
	ahead := time.Duration(0) // how far the server's clock is
	w := behind(t, env, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == clusterv1alpha1.OpenedPath {
				_, _ = rw.Write([]byte("0"))
				return
			}
			next.ServeHTTP(dated{rw, ahead}, r)
		})
	})
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "flotilla-controllers"}}
	leaseOf := func(by string, ago time.Duration) func() coordinationv1.LeaseSpec { // as of when it is written
		return func() coordinationv1.LeaseSpec {
			return coordinationv1.LeaseSpec{HolderIdentity: ptr.To(by), RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-ago)))}
		}
	}
	for _, tc := range []struct {
		name  string
		lease func() coordinationv1.LeaseSpec
		ahead time.Duration
		want  string
	}{
		{name: "nobody ever did", want: "none have since the control plane was made"},
		{name: "a replica does", lease: leaseOf("a", 0)},
		{name: "its machine's clock and ours differ", ahead: -2 * time.Hour, lease: leaseOf("a", 2*time.Hour)},
		{name: "it was killed", lease: leaseOf("a", 2*time.Minute), want: "the last ones were heard of "},
		{name: "it was stopped", lease: leaseOf("", time.Minute), want: "the last ones stopped "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if ahead = tc.ahead; tc.lease != nil {
				lease.Spec = tc.lease()
				write := env.Hub.Update
				if lease.ResourceVersion == "" {
					write = func(ctx context.Context, obj client.Object, _ ...client.UpdateOption) error {
						return env.Hub.Create(ctx, obj)
					}
				}
				if err := write(t.Context(), lease); err != nil {
					t.Fatal(err)
				}
			}
			result, resumed := w.call(t.Context(), "status --check"), w.call(t.Context(), "resume hub")
			if tc.want == "" {
				if result.Code != 0 || resumed.Code != 0 {
					t.Errorf("somebody leads: %s, %s", result, resumed)
				}
				return
			}
			if result.Code == 0 || !strings.Contains(result.Out, "ControlPlane flotilla: no controllers run here: "+tc.want) {
				t.Errorf("status: %s", result)
			}
			if resumed.Code == 0 || !strings.Contains(resumed.Err, tc.want) || strings.Contains(resumed.Out, "nothing to resume") {
				t.Errorf("resume hub: %s", resumed)
			}
		})
	}
}

// dated answers with the time of another clock.
type dated struct {
	http.ResponseWriter
	ahead time.Duration
}

func (d dated) WriteHeader(code int) {
	d.Header().Set("Date", time.Now().Add(d.ahead).UTC().Format(http.TimeFormat))
	d.ResponseWriter.WriteHeader(code)
}

func (d dated) Unwrap() http.ResponseWriter { return d.ResponseWriter }
