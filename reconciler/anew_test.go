package reconciler_test

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestADefinitionThatIsMadeAnew: one that is deleted and made anew, while its deletion waits
// in a cluster, becomes the new one there: at once where what others have of its kind kept it
// from being deleted, and as soon as it is gone where it is being deleted. It says meanwhile
// what it waits for.
func TestADefinitionThatIsMadeAnew(t *testing.T) {
	m := newMoves(t)
	policy := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "definitions"}}
	policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "yes"}}}}
	policy.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{from}}
	m.check(m.hub.Hub.Create(t.Context(), policy))
	for name, tc := range map[string]struct {
		plural  string
		cascade bool
		atOnce  bool   // it is made anew before its deletion is known to wait
		reason  string // why that waits
		words   string // what it says of it
	}{
		"others have something of its kind": {plural: "boats", reason: workv1alpha1.WorkHoldsOthersReason},
		"it is made anew at once":           {plural: "kites", reason: workv1alpha1.WorkHoldsOthersReason, atOnce: true},
		"what others have is being deleted too": {plural: "ships", reason: workv1alpha1.WorkTerminatingReason, cascade: true,
			words: "kept by what is left of its kind: Ship default/own (kept by its finalizers: example.com/hold)"},
	} {
		t.Run(name, func(t *testing.T) {
			m := m.in(t)
			crd := definitionOf(tc.plural, "v1")
			if tc.cascade {
				crd.Annotations = map[string]string{workv1alpha2.AllowCascadeAnnotation: "true"}
			}
			m.check(m.hub.Hub.Create(t.Context(), crd.DeepCopy()))
			own := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sea.example/v1", "kind": crd.Spec.Names.Kind, "metadata": map[string]any{
				"name": "own", "namespace": "default", "finalizers": []any{"example.com/hold"},
			}}}
			m.eventually("somebody has one of his own", func() error { return m.edges[from].Create(t.Context(), own) })
			was := &apiextensionsv1.CustomResourceDefinition{}
			m.check(m.edges[from].Get(t.Context(), client.ObjectKeyFromObject(crd), was))

			m.check(m.hub.Hub.Delete(t.Context(), crd.DeepCopy()))
			if !tc.atOnce {
				m.eventually("its deletion waits", func() error {
					return m.waits(crd, workv1alpha1.WorkDeletionBlocked, metav1.ConditionTrue, tc.reason, tc.words)
				})
			}
			anew := definitionOf(tc.plural, "v1", "v2")
			m.eventually("it is made anew", func() error { return m.hub.Hub.Create(t.Context(), anew.DeepCopy()) })
			if tc.cascade {
				m.eventually("it says what it waits for", func() error {
					return m.waits(crd, workv1alpha1.WorkApplied, metav1.ConditionFalse, workv1alpha1.WorkAppliedFailedReason, "is being deleted in the cluster, "+tc.words+": it is made once it is gone")
				})
				m.check(m.edges[from].Patch(t.Context(), own, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
			}
			m.eventually("it is the new one in the cluster", func() error {
				is := &apiextensionsv1.CustomResourceDefinition{}
				if err := m.edges[from].Get(t.Context(), client.ObjectKeyFromObject(crd), is); err != nil {
					return err
				}
				if len(is.Spec.Versions) != 2 || (is.UID == was.UID) == tc.cascade {
					return fmt.Errorf("it has %d versions; it is the same: %t", len(is.Spec.Versions), is.UID == was.UID)
				}
				return m.waits(crd, workv1alpha1.WorkApplied, metav1.ConditionTrue, workv1alpha1.WorkAppliedSuccessfulReason, "")
			})
			if there := m.there(m.edges[from], own, "default", "own"); there == tc.cascade {
				t.Errorf("what somebody has of its kind is there: %t", there)
			}
		})
	}
}

// waits errs while the Work of a definition does not say so.
func (m *moves) waits(crd *apiextensionsv1.CustomResourceDefinition, kind string, status metav1.ConditionStatus, reason, words string) error {
	work := &workv1alpha1.Work{}
	key := client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(from), Name: workv1alpha2.WorkName("CustomResourceDefinition", crd.Name, "")}
	if err := m.hub.Hub.Get(m.Context(), key, work); err != nil {
		return err
	}
	c := meta.FindStatusCondition(work.Status.Conditions, kind)
	if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, words) {
		return fmt.Errorf("conditions: %v", work.Status.Conditions)
	}
	return nil
}

// definitionOf defines a kind of the fleet in these versions, of which the first is stored.
func definitionOf(plural string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	kind := strings.ToUpper(plural[:1]) + plural[1:len(plural)-1]
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + ".sea.example", Labels: map[string]string{"fleet": "yes"}}}
	crd.Spec.Group, crd.Spec.Scope = "sea.example", apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind}
	for i, version := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
		})
	}
	return crd
}
