package cascadeguard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// harbour is a member with the definition of boats.
type harbour struct {
	ward
	definition *unstructured.Unstructured
}

func (h harbour) Get(context.Context, schema.GroupVersionKind, types.NamespacedName) (*unstructured.Unstructured, error) {
	return h.definition, nil
}

// TestADefinitionWaitsForWhatIsTheFleets: the deletion of a definition waits for this hub's objects of the kind, and
// the message does not propose to delete them along; for objects of others it needs people's permission.
func TestADefinitionWaitsForWhatIsTheFleets(t *testing.T) {
	const others = "CustomResourceDefinition boats.sea.example is not deleted in the cluster, as what is not of a template that goes, too, would go with it: %s. " +
		"Annotate this Work with propagation.flotilla.io/allow-cascade=true to delete all of it, or set spec.preserveResourcesOnDeletion to leave all of it"
	const waits = "CustomResourceDefinition boats.sea.example goes once what this control plane has of its kind in the cluster has left: %s. See what that waits for: flotilla explain boat/%s -n shop"
	boat := func(name string) string { return `{"metadata":{"namespace":"shop","name":"` + name + `"}}` }
	ours := func(name string) string {
		return `{"metadata":{"namespace":"shop","name":"` + name + `","labels":{"karmada.io/managed":"true","work.karmada.io/permanent-id":"w-` + name + `"},` +
			`"annotations":{"work.karmada.io/namespace":"` + space + `","work.karmada.io/name":"` + name + `"}}}`
	}
	many := make([]string, 9)
	for i := range many {
		many[i] = boat(fmt.Sprint(i))
	}
	for name, tc := range map[string]struct {
		there   []string
		gone    bool // the cluster leaves
		reason  string
		message string
	}{
		"nothing is there":                      {},
		"it goes itself":                        {there: []string{ours("goes")}},
		"others have one":                       {there: []string{boat("a"), ours("goes")}, reason: "HoldsOthers", message: fmt.Sprintf(others, "Boat shop/a")},
		"the hub has one":                       {there: []string{ours("web")}, reason: "HoldsOwn", message: fmt.Sprintf(waits, "Boat shop/web", "web")},
		"the hub and others have some":          {there: []string{boat("a"), ours("web"), ours("api")}, reason: "HoldsOwn", message: fmt.Sprintf(waits, "Boat shop/web and Boat shop/api", "web")},
		"the hub's is behind many":              {there: append(many, ours("web")), reason: "HoldsOwn", message: fmt.Sprintf(waits, "Boat shop/web", "web")},
		"the hub's leave with their cluster":    {there: []string{ours("web")}, gone: true},
		"one that has no Work is not the hub's": {there: []string{ours("orphan")}, reason: "HoldsOthers", message: fmt.Sprintf(others, "Boat shop/orphan")},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[%s]}`, strings.Join(tc.there, ","))
			}))
			defer server.Close()
			work := func(name string) *workv1alpha1.Work {
				return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name, Labels: map[string]string{workv1alpha2.WorkPermanentIDLabel: "w-" + name}}}
			}
			goes := work("goes")
			goes.DeletionTimestamp, goes.Finalizers = ptr.To(metav1.Now()), []string{"f/f"}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects([]client.Object{work("web"), work("api"), goes}...).Build()
			edge := harbour{ward{config: &rest.Config{Host: server.URL}, http: server.Client()}, &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"group": "sea.example", "names": map[string]any{"plural": "boats", "kind": "Boat"}, "versions": []any{map[string]any{"name": "v1", "served": true}},
			}}}}
			err := New(hub).Judge(t.Context(), edge, &Removal{
				Kind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, Key: types.NamespacedName{Name: "boats.sea.example"},
				Title: "CustomResourceDefinition boats.sea.example", Work: work("boats"), Standing: hubclaim.Standing{Hub: "one"}, Leaving: tc.gone,
			})
			if tc.message == "" {
				if err != nil {
					t.Errorf("it stays: %v", err)
				}
				return
			}
			if refusal := (*Refusal)(nil); !errors.As(err, &refusal) || err.Error() != tc.message || refusal.Waits() != (tc.reason == "HoldsOwn") {
				t.Errorf("%v\nwant %s", err, tc.message)
			}
			status, _ := Status(work("boats"), err, time.Time{})
			if got := status.Conditions[0].Reason; got != tc.reason {
				t.Errorf("reason %s, want %s", got, tc.reason)
			}
		})
	}
}
