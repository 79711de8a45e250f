package alerting_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/reconciler/alerting"
)

var shared servertest.Shared

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(shared.Main(m))
}

type noEvents struct{}

func (noEvents) Event(runtime.Object, string, string, string) {}

// receiver takes Events as JSON.
type receiver struct {
	mu  sync.Mutex
	got []string
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	var e struct{ Severity, Reason, Message string }
	if json.NewDecoder(req.Body).Decode(&e) != nil || req.Header.Get("X-Signature") == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, e.Severity+" "+e.Reason+": "+e.Message)
}

func (r *receiver) messages() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// TestOnAControlPlane: the loop follows Alerts, Providers and Secrets of a hub, and sends over HTTP.
func TestOnAControlPlane(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	mgr, err := hub.NewManager(env.Config, scheme.New(), hub.Options{Log: logr.Discard(), SeveralPerProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	loop := alerting.New(mgr.GetClient(), mgr.GetAPIReader(), noEvents{}, alerting.Options{
		FirstPause: 100 * time.Millisecond, LastPause: 200 * time.Millisecond, Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
	})
	if err := loop.Register(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	to := &receiver{}
	endpoint := httptest.NewServer(to)
	defer endpoint.Close()
	for _, o := range []client.Object{
		&notificationv1beta3.Provider{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hook"},
			Spec:       notificationv1beta3.ProviderSpec{Type: "generic-hmac", Address: endpoint.URL, SecretRef: &meta.LocalObjectReference{Name: "hook"}},
		},
		&notificationv1beta3.Alert{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hook"},
			Spec: notificationv1beta3.AlertSpec{
				ProviderRef:  meta.LocalObjectReference{Name: "hook"},
				EventSources: []notificationv1.CrossNamespaceObjectReference{{Kind: "Kustomization", Name: "*"}}, ExclusionList: []string{"quiet"},
			},
		},
	} {
		if err := env.Hub.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	report := func() {
		for _, e := range [][3]string{{corev1.EventTypeWarning, "BuildFailed", "no file"}, {corev1.EventTypeNormal, "Progressing", "quiet"}, {corev1.EventTypeNormal, "ReconciliationSucceeded", "applied"}} {
			loop.Recorder().Event(ks, e[0], e[1], e[2])
		}
	}
	report()
	// The Secret comes last: until then messages wait.
	if err := env.Hub.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hook"}, StringData: map[string]string{"token": "t0ken"}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"error BuildFailed: no file", "info ReconciliationSucceeded: applied"}
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		report() // however late the Alert is known; what was sent is not sent again
		return len(to.messages()) >= len(want), nil
	})
	got := to.messages()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v; messages (-want +got):\n%s", err, diff)
	}
}
