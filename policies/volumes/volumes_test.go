package volumes_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// workOf is a Work of a template with an annotation of its own, and one of what it carries.
func workOf(apiVersion, kind, own, ownValue, carried string) *workv1alpha1.Work {
	w := &workv1alpha1.Work{}
	w.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b-1"}
	w.Annotations = map[string]string{own: ownValue}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":%q,"kind":%q,"metadata":{"namespace":"shop","name":"data","annotations":{"resourcetemplate.karmada.io/uid":"t-1",%q:"true"}}}`, apiVersion, kind, carried)}}}
	return w
}

// TestStays: a claim goes only if its own template was deleted, or somebody named it.
func TestStays(t *testing.T) {
	const gone, cascade = workv1alpha2.TemplateGoneAnnotation, workv1alpha2.AllowCascadeAnnotation
	claim := schema.GroupKind{Kind: "PersistentVolumeClaim"}
	persons := workOf("v1", "PersistentVolumeClaim", "", "", "x")
	persons.Labels = nil
	unread := workOf("v1", "PersistentVolumeClaim", gone, "t-1", "x")
	unread.Spec.Workload.Manifests[0].Raw = []byte(`{"kind":"PersistentVolumeClaim"`)
	unknown := workOf("v1", "PersistentVolumeClaim", gone, "", "x")
	unknown.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"PersistentVolumeClaim"}`)
	for name, tc := range map[string]struct {
		kind schema.GroupKind
		work *workv1alpha1.Work
		want bool
	}{
		"nothing says that it may go":            {claim, workOf("v1", "PersistentVolumeClaim", "", "", "x"), true},
		"its template was deleted":               {claim, workOf("v1", "PersistentVolumeClaim", gone, "t-1", "x"), false},
		"the one before it was deleted":          {claim, workOf("v1", "PersistentVolumeClaim", gone, "t-0", "x"), true},
		"its Work is named":                      {claim, workOf("v1", "PersistentVolumeClaim", cascade, "true", "x"), false},
		"its Work says no":                       {claim, workOf("v1", "PersistentVolumeClaim", cascade, "false", "x"), true},
		"it names itself":                        {claim, workOf("v1", "PersistentVolumeClaim", "", "", cascade), false},
		"the Work is a person's own":             {claim, persons, false},
		"the Work cannot be read":                {claim, unread, true},
		"the Work does not know the template":    {claim, unknown, true},
		"another kind":                           {schema.GroupKind{Kind: "ConfigMap"}, workOf("v1", "ConfigMap", "", "", "x"), false},
		"somebody's kind that is called so, too": {schema.GroupKind{Group: "sea.example", Kind: "PersistentVolumeClaim"}, workOf("sea.example/v1", "PersistentVolumeClaim", "", "", "x"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := volumes.Stays(tc.kind, tc.work); got != tc.want {
				t.Errorf("it stays: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestCarried: a Work of a template brings a claim or none.
func TestCarried(t *testing.T) {
	persons := workOf("v1", "PersistentVolumeClaim", "", "", "x")
	persons.Labels = nil
	for name, tc := range map[string]struct {
		work *workv1alpha1.Work
		want string
	}{
		"a claim":                    {workOf("v1", "PersistentVolumeClaim", "", "", "x"), "t-1 true"},
		"a person's own":             {persons, " false"},
		"what only speaks of claims": {workOf("v1", "ConfigMap", "", "", "PersistentVolumeClaim"), " false"},
		"somebody's kind":            {workOf("sea.example/v1", "PersistentVolumeClaim", "", "", "x"), " false"},
		"nothing":                    {&workv1alpha1.Work{}, " false"},
	} {
		uid, carried := volumes.Carried(tc.work)
		if got := fmt.Sprintf("%s %t", uid, carried); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestWait: a while, and no longer than that whatever clocks say.
func TestWait(t *testing.T) {
	now := time.Unix(1000, 0)
	for age, want := range map[time.Duration]time.Duration{0: volumes.Grace, 3 * time.Second: volumes.Grace - 3*time.Second, volumes.Grace: 0, time.Hour: 0, -time.Hour: 0} {
		if got := volumes.Wait(now.Add(-age), now); got != want {
			t.Errorf("after %s it waits %s, want %s", age, got, want)
		}
	}
}
