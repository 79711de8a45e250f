package agents_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
	"github.com/flotilla-io/flotilla/internal/registration/token"
)

// TestRegistration goes the way of a cluster from its token to its end.
func TestRegistration(t *testing.T) {
	w := worldOf(t)
	by := w.token(t, "north", "id-north")
	cfg := w.byToken(t, by)
	credentials, err := registration.Request(t.Context(), cfg, registration.Options{Cluster: "north", ClusterID: "id-north"})
	if err != nil {
		t.Fatal(err)
	}
	agent := registration.Connection(cfg, credentials)
	own := hubOf(t, agent)
	servertest.Until(t, "the agent makes its Cluster", func() bool {
		err := own.Create(t.Context(), clusterOf("north", "id-north"))
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	w.leaves(t, "north")
	servertest.Until(t, "the agent reads its Works", func() bool {
		return own.List(t.Context(), &workv1alpha1.WorkList{}, client.InNamespace("karmada-es-north")) == nil
	})

	t.Run("the token is good for nothing more", func(t *testing.T) {
		_, err := registration.Request(t.Context(), cfg, registration.Options{Cluster: "north", ClusterID: "id-north"})
		if !errors.Is(err, registration.ErrDenied) || !strings.HasSuffix(err.Error(), "has been used: flotilla token create --cluster-name north makes another") {
			t.Errorf("a second request by the token = %v", err)
		}
		if strings.Contains(err.Error(), by) {
			t.Error("the error tells the token")
		}
		all, err := token.List(t.Context(), w.Hub)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range all {
			if strings.HasPrefix(by, info.ID) && (!info.Used || cmp.Equal(info.Usages, []string{"authentication", "signing"})) {
				t.Errorf("the token is shown as %+v", info)
			}
		}
	})
	t.Run("the agent renews its certificate by itself", func(t *testing.T) {
		next, err := registration.Request(t.Context(), agent, registration.Options{Cluster: "north"})
		if err != nil {
			t.Fatal(err)
		}
		if string(next.Key) == string(credentials.Key) {
			t.Error("the key is the old one")
		}
		if err := hubOf(t, registration.Connection(cfg, next)).Get(t.Context(), client.ObjectKey{Name: "north"}, &clusterv1alpha1.Cluster{}); err != nil {
			t.Errorf("with the next certificate: %v", err)
		}
		_, err = registration.Request(t.Context(), agent, registration.Options{Cluster: "south"})
		if !errors.Is(err, registration.ErrDenied) {
			t.Errorf("the certificate of another = %v", err)
		}
	})
	t.Run("a new token ends what the old certificate is good for", func(t *testing.T) {
		again := w.first(t, "north", "id-north")
		if err := hubOf(t, again).Get(t.Context(), client.ObjectKey{Name: "north"}, &clusterv1alpha1.Cluster{}); err != nil {
			t.Errorf("with the new certificate: %v", err)
		}
	})
	t.Run("rights go with the cluster, after its last Work", func(t *testing.T) {
		again := hubOf(t, w.first(t, "north", "id-north"))
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-north", Name: "w", Finalizers: []string{"karmada.io/execution-controller"}}}
		if err := w.Hub.Create(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		online := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"ClusterReady","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		if err := again.Status().Patch(t.Context(), clusterOf("north", ""), client.RawPatch("application/merge-patch+json", online)); err != nil {
			t.Fatal(err)
		}
		if err := w.Hub.Delete(t.Context(), clusterOf("north", "")); err != nil {
			t.Fatal(err)
		}
		servertest.Until(t, "the agent is asked to let go of the Work, and may", func() bool {
			found := &workv1alpha1.Work{}
			if err := again.Get(t.Context(), client.ObjectKeyFromObject(work), found); err != nil || found.DeletionTimestamp.IsZero() {
				return false
			}
			binding := &rbacv1.RoleBinding{}
			if err := w.Hub.Get(t.Context(), client.ObjectKey{Namespace: "karmada-es-north", Name: identity.WorkRole("north")}, binding); err != nil || binding.DeletionTimestamp.IsZero() {
				return false // the namespace controller has not come to it yet
			}
			found.Finalizers = nil
			return again.Update(t.Context(), found) == nil
		})
		servertest.Until(t, "all is gone", func() bool {
			for _, obj := range []client.Object{
				&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "north"}},
				&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: identity.Role("north")}},
				&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: identity.Role("north")}},
				&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: identity.SecretRole("north")}},
				&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: identity.EventRole("north")}},
			} {
				if err := w.Hub.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
					return false
				}
			}
			return true
		})
		if _, err := registration.Request(t.Context(), agent, registration.Options{Cluster: "north"}); !apierrors.IsForbidden(err) && !errors.Is(err, registration.ErrDenied) {
			t.Errorf("the agent of a cluster that is gone = %v", err)
		}
	})
}

// TestAgentsAreHeldToTheirOwn tries as one agent what is another's.
func TestAgentsAreHeldToTheirOwn(t *testing.T) {
	w := worldOf(t)
	east, west := w.register(t, "east", "id-east"), w.register(t, "west", "id-west")
	own := hubOf(t, east)
	for name, agent := range map[string]client.Client{"east": own, "west": hubOf(t, west)} {
		servertest.Until(t, "rights to its Works", func() bool {
			return agent.List(t.Context(), &workv1alpha1.WorkList{}, client.InNamespace("karmada-es-"+name)) == nil
		})
		if err := agent.Create(t.Context(), secretOf(name)); err != nil {
			t.Fatal(err)
		}
	}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "w", Finalizers: []string{"karmada.io/execution-controller"}}}
	if err := w.Hub.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	patch := func(obj client.Object, merge string) error {
		return own.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(merge)))
	}
	cluster := func(name string) client.Object { return clusterOf(name, "") }
	workOf := func() client.Object {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "w"}}
	}
	profileIn := func(cluster, name, text string, edits ...func(*corev1.ConfigMap)) client.Object {
		out := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster, Name: name}, Data: map[string]string{"profile": text}}
		for _, edit := range edits {
			edit(out)
		}
		return out
	}
	if err := own.Create(t.Context(), profileIn("east", "node-profile", "{}")); err != nil {
		t.Fatalf("an agent does not tell of its nodes: %v", err)
	}
	profile := func(text string, edits ...func(*corev1.ConfigMap)) func() error {
		return func() error { return own.Update(t.Context(), profileIn("east", "node-profile", text, edits...)) }
	}
	const profileAlone = "the ConfigMap node-profile has data.profile, of 32768 bytes at most, may have data.waiting, of 16384, and has nothing else"
	cases := map[string]struct {
		do   func() error
		says string // part of why it is refused; empty: it is allowed
	}{
		"tells of its nodes":         {do: profile(`{"version":1}`)},
		"tells of as many as it may": {do: profile(strings.Repeat("x", 32<<10))},
		"tells of more than it may":  {do: profile(strings.Repeat("x", 32<<10+1)), says: profileAlone},
		"tells of what waits":        {do: profile("{}", func(c *corev1.ConfigMap) { c.Data["waiting"] = strings.Repeat("x", 16<<10) })},
		"tells of more that waits than it may": {
			do: profile("{}", func(c *corev1.ConfigMap) { c.Data["waiting"] = strings.Repeat("x", 16<<10+1) }), says: profileAlone,
		},
		"tells of what waits alone": {
			do: profile("", func(c *corev1.ConfigMap) { c.Data = map[string]string{"waiting": "{}"} }), says: profileAlone,
		},
		"tells beside it":        {do: profile("{}", func(c *corev1.ConfigMap) { c.Data["more"] = "x" }), says: profileAlone},
		"tells bytes beside it":  {do: profile("{}", func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"more": []byte("x")} }), says: profileAlone},
		"tells by an annotation": {do: profile("{}", func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"a": "b"} }), says: profileAlone},
		"has its namespace stay": {do: profile("{}", func(c *corev1.ConfigMap) { c.Finalizers = []string{"a.example/b"} }), says: profileAlone},
		"reads what it told": {do: func() error {
			return own.Get(t.Context(), client.ObjectKeyFromObject(profileIn("east", "node-profile", "")), &corev1.ConfigMap{})
		}},
		"removes what it told":          {do: func() error { return own.Delete(t.Context(), profileIn("east", "node-profile", "")) }, says: `cannot delete resource "configmaps"`},
		"makes another ConfigMap":       {do: func() error { return own.Create(t.Context(), profileIn("east", "other", "{}")) }, says: `the ConfigMap "other" is not this agent's`},
		"tells of the nodes of another": {do: func() error { return own.Create(t.Context(), profileIn("west", "node-profile", "{}")) }, says: `cannot create resource "configmaps"`},
		"lists ConfigMaps": {do: func() error {
			return own.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("karmada-es-east"))
		}, says: `cannot list resource "configmaps"`},
		"reads its Cluster": {do: func() error { return own.Get(t.Context(), client.ObjectKey{Name: "east"}, &clusterv1alpha1.Cluster{}) }},
		"reads another Cluster": {
			do:   func() error { return own.Get(t.Context(), client.ObjectKey{Name: "west"}, &clusterv1alpha1.Cluster{}) },
			says: `cannot get resource "clusters"`,
		},
		"lists all Clusters": {do: func() error { return own.List(t.Context(), &clusterv1alpha1.ClusterList{}) }, says: `cannot list resource "clusters"`},
		"lists its Cluster": {do: func() error {
			return own.List(t.Context(), &clusterv1alpha1.ClusterList{}, client.MatchingFields{"metadata.name": "east"})
		}},
		"makes another":        {do: func() error { return own.Create(t.Context(), clusterOf("third", "id-3")) }, says: `the Cluster "third" is not this agent's: its own is ["east"]`},
		"changes its endpoint": {do: func() error { return patch(cluster("east"), `{"spec":{"apiEndpoint":"https://east.example"}}`) }},
		"changes its id":       {do: func() error { return patch(cluster("east"), `{"spec":{"id":"id-west"}}`) }, says: "spec.id: it is id-east and cannot change"},
		"has its orphans removed, behind what it may say": {
			do: func() error {
				return patch(cluster("east"), `{"metadata":{"annotations":{"cluster.flotilla.io/accounts-namespace":"x","cluster.flotilla.io/orphans":"Delete"}}}`)
			},
			says: "metadata.annotations.cluster.flotilla.io/orphans: it is not the agent's to change",
		},
		"says how its room is counted": {
			do:   func() error { return patch(cluster("east"), `{"spec":{"resourceModels":[]}}`) },
			says: "spec.resourceModels: they say how the room",
		},
		"goes to push mode": {do: func() error { return patch(cluster("east"), `{"spec":{"syncMode":"Push"}}`) }, says: "spec.syncMode: an agent's cluster is in pull mode"},
		"taints itself": {
			do:   func() error { return patch(cluster("east"), `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`) },
			says: "spec.taints: they are not the agent's to change",
		},
		"says as whom it applies": {do: func() error {
			return patch(cluster("east"), `{"metadata":{"annotations":{"cluster.flotilla.io/apply-as":"ControlPlane"}}}`)
		}, says: "cluster.flotilla.io/apply-as: it is not the agent's to change"},
		"labels itself": {do: func() error { return patch(cluster("east"), `{"metadata":{"labels":{"tier":"secret"}}}`) }, says: "labels, finalizers and owners"},
		"labels itself by its status": {do: func() error {
			labeled := clusterOf("east", "")
			merge := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"tier":"secret"},"finalizers":["a/b"]},"status":{"kubernetesVersion":"v1"}}`))
			if err := own.Status().Patch(t.Context(), labeled, merge); err != nil {
				return err
			}
			if labeled.Labels["tier"] != "" || slices.Contains(labeled.Finalizers, "a/b") || labeled.Status.KubernetesVersion != "v1" {
				return fmt.Errorf("labels %v, finalizers %v, version %s", labeled.Labels, labeled.Finalizers, labeled.Status.KubernetesVersion)
			}
			return nil
		}},
		"frees itself": {do: func() error { return patch(cluster("east"), `{"metadata":{"finalizers":null}}`) }, says: "labels, finalizers and owners"},
		"has others' Secret": {
			do: func() error {
				return patch(cluster("east"), `{"spec":{"secretRef":{"namespace":"karmada-cluster","name":"west"}}}`)
			},
			says: "spec.secretRef: it must be karmada-cluster/east",
		},
		"changes another Cluster": {do: func() error { return patch(cluster("west"), `{"spec":{"region":"x"}}`) }, says: `cannot patch resource "clusters"`},
		"reads its Secret": {do: func() error {
			return own.Get(t.Context(), client.ObjectKeyFromObject(secretOf("east")), &corev1.Secret{})
		}},
		"reads others' Secret": {
			do: func() error {
				return own.Get(t.Context(), client.ObjectKeyFromObject(secretOf("west")), &corev1.Secret{})
			},
			says: `cannot get resource "secrets"`,
		},
		"makes others' Secret": {do: func() error { return own.Create(t.Context(), secretOf("west-impersonator")) }, says: `the Secret "west-impersonator" is not this agent's`},
		"makes a Secret that is filled with a token": {
			do: func() error {
				s := secretOf("east-impersonator")
				s.Type, s.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "default"}
				return own.Create(t.Context(), s)
			},
			says: "type: the credentials of a cluster are of the type Opaque",
		},
		"reads others' Works": {
			do: func() error {
				return own.List(t.Context(), &workv1alpha1.WorkList{}, client.InNamespace("karmada-es-west"))
			},
			says: `cannot list resource "works"`,
		},
		"makes a Work": {do: func() error {
			return own.Create(t.Context(), &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "new"}})
		}, says: `cannot create resource "works"`},
		"changes a Work":       {do: func() error { return patch(workOf(), `{"spec":{"suspendDispatching":true}}`) }, says: "its status and the finalizer karmada.io/execution-controller alone"},
		"labels a Work":        {do: func() error { return patch(workOf(), `{"metadata":{"labels":{"a":"b"}}}`) }, says: "its status and the finalizer karmada.io/execution-controller alone"},
		"lets go of a Work":    {do: func() error { return patch(workOf(), `{"metadata":{"finalizers":null}}`) }},
		"tells of its Cluster": {do: func() error { return own.Create(t.Context(), eventOf("Cluster", "", "east")) }},
		"tells of another":     {do: func() error { return own.Create(t.Context(), eventOf("Cluster", "", "west")) }, says: "an agent tells of its own cluster and Works alone"},
		"grants itself more": {do: func() error {
			return own.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "x"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cluster-admin"}})
		}, says: `cannot create resource "clusterrolebindings"`},
		"reads its hub's fleet": {do: func() error { return own.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{}) }},
		"reads the version": {do: func() error {
			return own.Get(t.Context(), client.ObjectKey{Namespace: "karmada-system", Name: "other"}, &corev1.ConfigMap{})
		}, says: `cannot get resource "configmaps"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.do()
			switch {
			case tc.says == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.says != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("= %v, want forbidden with %q", err, tc.says)
			}
		})
	}
}

// TestNamesOfSecrets: no cluster is called as a Secret that is not its own.
func TestNamesOfSecrets(t *testing.T) {
	w := worldOf(t)
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "karmada-itself", Annotations: map[string]string{corev1.ServiceAccountNameKey: "karmada-itself"}}, Type: corev1.SecretTypeServiceAccountToken}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: made.Namespace, Name: made.Name}}
	for _, obj := range []client.Object{account, made} {
		if err := w.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	hub := w.byToken(t, w.token(t, "", ""))
	for name, says := range map[string]string{
		"west-impersonator": "does not end with -impersonator",
		"karmada-itself":    "has a Secret karmada-itself of its own",
	} {
		_, err := registration.Request(t.Context(), hub, registration.Options{Cluster: name})
		if !errors.Is(err, registration.ErrDenied) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s = %v", name, err)
		}
	}
}

// TestClustersThatLeft come back by a token alone, not by what they had.
func TestClustersThatLeft(t *testing.T) {
	w := worldOf(t)
	agent := w.first(t, "again", "id-again")
	own := hubOf(t, agent)
	issued := time.Now()
	labeled := clusterOf("again", "id-again")
	labeled.Labels = map[string]string{"tier": "secret"}
	if err := own.Create(t.Context(), labeled); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "labels, finalizers and owners") {
		t.Errorf("makes itself with labels = %v", err)
	}
	pruned := clusterOf("again", "id-again")
	pruned.Annotations = map[string]string{"cluster.flotilla.io/orphans": "Delete"}
	if err := own.Create(t.Context(), pruned); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "metadata.annotations.cluster.flotilla.io/orphans") {
		t.Errorf("makes itself with an administrator's annotation = %v", err)
	}
	counted := clusterOf("again", "id-again")
	counted.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{{Ranges: []clusterv1alpha1.ResourceModelRange{{Name: "cpu", Max: resource.MustParse("9223372036854775807")}}}}
	if err := own.Create(t.Context(), counted); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.resourceModels") {
		t.Errorf("makes itself with models of its own = %v", err)
	}
	if err := own.Create(t.Context(), clusterOf("again", "id-again")); err != nil {
		t.Fatal(err)
	}
	w.leaves(t, "again")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: identity.Role("again")}}
	const finalizer = "test.flotilla.io/held"
	hold := func(finalizers ...string) bool {
		if w.Hub.Get(t.Context(), client.ObjectKeyFromObject(role), role) != nil {
			return false
		}
		role.Finalizers = finalizers
		return metav1.GetControllerOf(role) != nil && w.Hub.Update(t.Context(), role) == nil
	}
	servertest.Until(t, "its rights are the Cluster's, and are held", func() bool { return hold(finalizer) })
	if err := w.Hub.Delete(t.Context(), clusterOf("again", "")); err != nil {
		t.Fatal(err)
	}
	servertest.Until(t, "the cluster is gone", func() bool {
		return apierrors.IsNotFound(w.Hub.Get(t.Context(), client.ObjectKey{Name: "again"}, &clusterv1alpha1.Cluster{}))
	})
	if err := own.Create(t.Context(), clusterOf("again", "id-again")); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "register it again with a token") {
		t.Errorf("comes back by itself = %v", err)
	}
	servertest.Until(t, "the clock goes on", func() bool { return time.Now().Unix() > issued.Unix() })
	if err := w.Hub.Create(t.Context(), clusterOf("again", "id-again")); err != nil {
		t.Fatal(err)
	}
	servertest.Until(t, "its old certificate is good for nothing", func() bool {
		return apierrors.IsUnauthorized(own.Get(t.Context(), client.ObjectKey{Name: "again"}, &clusterv1alpha1.Cluster{}))
	})
	servertest.Until(t, "its rights go", func() bool { return hold() })
}

func secretOf(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: name}, StringData: map[string]string{"token": "t"}}
}

func eventOf(kind, namespace, name string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", GenerateName: "e-"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "cluster.karmada.io/v1alpha1", Kind: kind, Namespace: namespace, Name: name},
	}
}
