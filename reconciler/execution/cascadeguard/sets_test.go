package cascadeguard

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// setOwner is a member with one StatefulSet; nil for none.
type setOwner struct {
	set     *unstructured.Unstructured
	clients *kubefake.Clientset
}

func (m *setOwner) Clients() kubernetes.Interface { return m.clients }

func (m *setOwner) Get(context.Context, schema.GroupVersionKind, types.NamespacedName) (*unstructured.Unstructured, error) {
	if m.set == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "db")
	}
	return m.set.DeepCopy(), nil
}

// Patch counts a generation, as a server does.
func (m *setOwner) Patch(_ context.Context, _ schema.GroupVersionKind, _ types.NamespacedName, patch []byte) error {
	before, err := m.set.MarshalJSON()
	if err != nil {
		return err
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return err
	}
	generation := m.set.GetGeneration()
	if err := json.Unmarshal(after, &m.set.Object); err != nil {
		return err
	}
	m.set.SetGeneration(generation + 1)
	return nil
}

// setSaying returns a StatefulSet with a retention policy for its deletion, a generation, and the generation that its
// controller has observed.
func setSaying(whenDeleted string, generation, observed int64) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"namespace": "shop", "name": "db", "uid": "set-1"},
		"spec": map[string]any{
			"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": whenDeleted, "whenScaled": "Retain"},
			"volumeClaimTemplates":                 []any{map[string]any{"metadata": map[string]any{"name": "data"}}},
		},
		"status": map[string]any{"observedGeneration": observed},
	}}
	out.SetGeneration(generation)
	return out
}

// TestWhatASetOwnsOutlivesIt: a StatefulSet is deleted only once it and its Pods own no claims, and its
// controller does not make it their owner again.
func TestWhatASetOwnsOutlivesIt(t *testing.T) {
	const waits = "StatefulSet shop/db goes once its controller in the cluster has seen that its claims stay"
	type outcome struct {
		Err, Policy string
		Owned       bool
	}
	allowing := &metav1.ObjectMeta{Annotations: map[string]string{workv1alpha2.AllowCascadeAnnotation: "true"}}
	for name, tc := range map[string]struct {
		set     *unstructured.Unstructured
		claim   string // "data-db-0" where empty
		owner   string // the set where empty
		desired metav1.Object
		own     bool // the Work is a person's own
		refuses string
		want    outcome
	}{
		"it would take them along":               {set: setSaying("Delete", 3, 3), want: outcome{waits, "Retain", true}},
		"its controller has not seen the change": {set: setSaying("Retain", 4, 3), want: outcome{waits, "Retain", true}},
		"its controller has, and left a claim":   {set: setSaying("Retain", 4, 4), want: outcome{"", "Retain", false}},
		"a replica owns it":                      {set: setSaying("Retain", 4, 4), owner: "Pod", want: outcome{"", "Retain", false}},
		"somebody else owns it":                  {set: setSaying("Retain", 4, 4), owner: "Backup", want: outcome{"", "Retain", true}},
		"it has no claims":                       {set: setSaying("Delete", 4, 3), claim: "other", owner: "Backup", want: outcome{"", "Delete", true}},
		"it says that its data goes":             {set: setSaying("Delete", 3, 3), desired: allowing, want: outcome{"", "Delete", true}},
		"a person's own Work brought it":         {set: setSaying("Delete", 3, 3), own: true, want: outcome{"", "Delete", true}},
		"it is gone":                             {want: outcome{"", "", true}},
		"nobody knows what it owns":              {set: setSaying("Delete", 3, 3), refuses: "list", want: outcome{"list the claims of StatefulSet shop/db: no", "Delete", true}},
		"a claim cannot be changed":              {set: setSaying("Retain", 3, 3), refuses: "patch", want: outcome{"have PersistentVolumeClaim shop/data-db-0 outlive db: no", "Retain", true}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-db-0", UID: "c-1"}}
			if tc.claim != "" {
				claim.Name = tc.claim
			}
			claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "StatefulSet", Name: "db", UID: "set-1"}}
			if tc.owner != "" {
				claim.OwnerReferences[0] = metav1.OwnerReference{APIVersion: "v1", Kind: tc.owner, Name: "db-0", UID: "o-1"}
			}
			m := &setOwner{set: tc.set, clients: kubefake.NewClientset(claim)}
			if tc.refuses != "" {
				m.clients.PrependReactor(tc.refuses, "*", func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no") })
			}
			r := &Removal{
				Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, Key: types.NamespacedName{Namespace: "shop", Name: "db"},
				Title: "StatefulSet shop/db", Work: &workv1alpha1.Work{}, Desired: tc.desired,
			}
			if !tc.own {
				r.Work.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b-1"}
			}
			got := outcome{}
			if err := New(nil).Judge(t.Context(), m, r); err != nil {
				got.Err = err.Error()
			}
			if m.set != nil {
				got.Policy, _, _ = unstructured.NestedString(m.set.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
			}
			left, err := m.clients.CoreV1().PersistentVolumeClaims("shop").Get(t.Context(), claim.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got.Owned = len(left.OwnerReferences) > 0
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
