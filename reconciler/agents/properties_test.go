package agents_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
	"github.com/flotilla-io/flotilla/internal/registration/token"
)

// isAt checks what policies select a cluster by, and what its agent asks for.
func (w *world) isAt(t *testing.T, when, name string, want clusterv1alpha1.ClusterSpec, asked string) {
	t.Helper()
	c := &clusterv1alpha1.Cluster{}
	if err := w.Hub.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		t.Fatal(err)
	}
	got := clusterv1alpha1.ClusterSpec{Provider: c.Spec.Provider, Region: c.Spec.Region, Zone: c.Spec.Zone, Zones: c.Spec.Zones}
	for _, taint := range c.Spec.Taints {
		if !strings.HasPrefix(taint.Key, "cluster.karmada.io/") { // those follow its health
			got.Taints = append(got.Taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
	if got := c.Annotations[identity.RequestedAnnotation]; got != asked {
		t.Errorf("%s, its agent asks for %s, want %s", when, got, asked)
	}
}

func (w *world) labels(t *testing.T, name string) map[string]string {
	t.Helper()
	c := &clusterv1alpha1.Cluster{}
	if err := w.Hub.Get(t.Context(), client.ObjectKey{Name: name}, c); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return c.Labels
}

func mergeOf(t *testing.T, by client.Client, name, patch string) error {
	t.Helper()
	return by.Patch(t.Context(), clusterOf(name, ""), client.RawPatch("application/merge-patch+json", []byte(patch)))
}

// TestWhatAnAgentSaysOfItsCluster: where a cluster is counts once an administrator
// has said it, whatever its agent says, when it registers and later.
func TestWhatAnAgentSaysOfItsCluster(t *testing.T) {
	w := worldOf(t)
	agent := hubOf(t, w.first(t, "elsewhere", "id-elsewhere"))
	declared := clusterOf("elsewhere", "id-elsewhere")
	declared.Spec.Region, declared.Spec.Zones, declared.Spec.Provider = "eu", []string{"eu-1"}, "acme"
	if err := agent.Create(t.Context(), declared); err != nil {
		t.Fatal(err)
	}
	w.leaves(t, "elsewhere")
	nowhere := clusterv1alpha1.ClusterSpec{}
	w.isAt(t, "as its agent registered it", "elsewhere", nowhere, `{"provider":"acme","region":"eu","zones":["eu-1"]}`)
	for range 2 {
		if err := mergeOf(t, agent, "elsewhere", `{"spec":{"region":"asia","zone":"asia-1","zones":null}}`); err != nil {
			t.Errorf("Karmada's agents say it at each start, and must go on: %v", err)
		}
		w.isAt(t, "as its agent changed it", "elsewhere", nowhere, `{"provider":"acme","region":"asia","zones":["asia-1"]}`)
	}
	if err := mergeOf(t, agent, "elsewhere", `{"metadata":{"annotations":{"registration.flotilla.io/requested-properties":null}}}`); err != nil {
		t.Error(err)
	}
	w.isAt(t, "as its agent would have it forgotten", "elsewhere", nowhere, `{"provider":"acme","region":"asia","zones":["asia-1"]}`)
	if err := mergeOf(t, agent, "elsewhere", `{"metadata":{"annotations":{"cluster.flotilla.io/any":"x"}}}`); !apierrors.IsForbidden(err) {
		t.Errorf("an annotation that is an administrator's: %v", err)
	}

	if err := mergeOf(t, w.Hub, "elsewhere", `{"spec":{"provider":"acme","region":"asia"}}`); err != nil {
		t.Fatal(err)
	}
	asia := clusterv1alpha1.ClusterSpec{Provider: "acme", Region: "asia"}
	w.isAt(t, "as an administrator approved it", "elsewhere", asia, `{"zones":["asia-1"]}`)
	if err := mergeOf(t, agent, "elsewhere", `{"spec":{"region":"","provider":null}}`); err != nil {
		t.Error(err)
	}
	w.isAt(t, "as its agent emptied it", "elsewhere", asia, `{"zones":["asia-1"]}`)
	if err := mergeOf(t, w.Hub, "elsewhere", `{"spec":{"zones":["asia-1"]}}`); err != nil {
		t.Fatal(err)
	}
	asia.Zones = []string{"asia-1"}
	w.isAt(t, "as all of it was approved", "elsewhere", asia, "")
}

// TestWhatATokenSaysOfItsCluster: an administrator says by the token where the
// cluster is, what it is labelled with, and what keeps others from it.
func TestWhatATokenSaysOfItsCluster(t *testing.T) {
	w := worldOf(t)
	says := func(p identity.Properties) *rest.Config {
		made, _, err := token.Create(t.Context(), w.Hub, token.Options{Cluster: "said", Properties: p})
		if err != nil {
			t.Fatal(err)
		}
		return w.byToken(t, made)
	}
	agent := hubOf(t, w.firstBy(t, says(identity.Properties{
		Region: "eu", ApplyAs: clusterv1alpha1.ApplyAsHub, Labels: map[string]string{"tier": "secret"}, Taints: []corev1.Taint{{Key: "edge", Effect: corev1.TaintEffectNoSchedule}},
	}), "said", "id-said"))
	declared := clusterOf("said", "id-said")
	declared.Labels = map[string]string{"team": "public"}
	if err := agent.Create(t.Context(), declared); !apierrors.IsForbidden(err) {
		t.Fatalf("a label that the token does not say: %v", err)
	}
	declared = clusterOf("said", "id-said")
	declared.Spec.Region, declared.Spec.Provider = "eu", "acme"
	declared.Annotations = map[string]string{clusterv1alpha1.ApplyAsAnnotation: clusterv1alpha1.ApplyAsAuthor}
	if err := agent.Create(t.Context(), declared); err != nil {
		t.Fatal(err)
	}
	if as := declared.Annotations[clusterv1alpha1.ApplyAsAnnotation]; as != clusterv1alpha1.ApplyAsHub {
		t.Errorf("it applies as %q, the token says otherwise", as)
	}
	w.leaves(t, "said")
	eu := clusterv1alpha1.ClusterSpec{Region: "eu", Taints: []corev1.Taint{{Key: "edge", Effect: corev1.TaintEffectNoSchedule}}}
	w.isAt(t, "as its token says", "said", eu, `{"provider":"acme"}`)
	if got := w.labels(t, "said")["tier"]; got != "secret" {
		t.Errorf("its label is %q", got)
	}
	servertest.Until(t, "its role is its Cluster's", func() bool { // or it would be registering still
		role := &rbacv1.ClusterRole{}
		err := w.Hub.Get(t.Context(), client.ObjectKey{Name: identity.Role("said")}, role)
		return err == nil && metav1.GetControllerOf(role) != nil
	})

	w.firstBy(t, says(identity.Properties{Provider: "acme", Zones: []string{"eu-1"}}), "said", "id-said")
	eu.Provider, eu.Zones = "acme", []string{"eu-1"}
	w.isAt(t, "registered anew", "said", eu, "")

	_, _, err := token.Create(t.Context(), w.Hub, token.Options{Properties: identity.Properties{Region: "not a region"}})
	if !errors.Is(err, token.ErrInvalid) {
		t.Errorf("a token for what cannot be: %v", err)
	}
}

// TestNewClustersApplyAsTheAuthor: templates are applied in a new cluster as who applied
// them, whoever makes the Cluster, unless an administrator says otherwise.
func TestNewClustersApplyAsTheAuthor(t *testing.T) {
	w := worldOf(t)
	agent := hubOf(t, w.first(t, "pulled", "id-pulled"))
	for _, tc := range []struct {
		name       string
		by         client.Client
		says, want string
	}{
		{"pulled", agent, "", clusterv1alpha1.ApplyAsAuthor},
		{"pushed", w.Hub, "", clusterv1alpha1.ApplyAsAuthor},
		{"trusted", w.Hub, clusterv1alpha1.ApplyAsHub, clusterv1alpha1.ApplyAsHub},
	} {
		made := clusterOf(tc.name, "id-"+tc.name)
		if tc.says != "" {
			made.Annotations = map[string]string{clusterv1alpha1.ApplyAsAnnotation: tc.says}
		}
		if err := tc.by.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		w.leaves(t, tc.name)
		if got := made.Annotations[clusterv1alpha1.ApplyAsAnnotation]; got != tc.want {
			t.Errorf("%s applies as %q, not as %q", tc.name, got, tc.want)
		}
	}

	// What says nothing does not stand for all rights.
	wrong := clusterOf("wrong", "id-wrong")
	wrong.Annotations = map[string]string{clusterv1alpha1.ApplyAsAnnotation: "author"}
	if err := w.Hub.Create(t.Context(), wrong); !apierrors.IsBadRequest(err) {
		t.Errorf("a cluster that applies as \"author\": %v", err)
	}
	if err := mergeOf(t, w.Hub, "pushed", `{"metadata":{"annotations":{"cluster.flotilla.io/apply-as":"author"}}}`); !apierrors.IsBadRequest(err) {
		t.Errorf("one that is to apply as \"author\": %v", err)
	}

	// One from before has no annotation; that stays so when its agent or somebody writes it.
	if err := mergeOf(t, w.Hub, "pulled", `{"metadata":{"annotations":{"cluster.flotilla.io/apply-as":null}}}`); err != nil {
		t.Fatal(err)
	}
	if err := mergeOf(t, agent, "pulled", `{"spec":{"region":"eu"}}`); err != nil {
		t.Fatal(err)
	}
	stands := &clusterv1alpha1.Cluster{}
	if err := w.Hub.Get(t.Context(), client.ObjectKey{Name: "pulled"}, stands); err != nil {
		t.Fatal(err)
	}
	if got, has := stands.Annotations[clusterv1alpha1.ApplyAsAnnotation]; has {
		t.Errorf("a cluster from before applies as %q", got)
	}
}
