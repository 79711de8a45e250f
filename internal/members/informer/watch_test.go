package informer

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/ownership"
)

var (
	shipKind = schema.GroupVersionKind{Group: "test.flotilla.io", Version: "v1", Kind: "Ship"}
	ships    = Kind{Resource: shipKind.GroupVersion().WithResource("ships"), Namespaced: true}
)

func newWatch(client *dynamicfake.FakeDynamicClient, lookup func(context.Context, schema.GroupVersionKind) (Kind, error)) *kindWatch {
	return &kindWatch{
		gvk: shipKind, served: served{lookup: lookup, forget: func(schema.GroupVersionKind) {}}, client: client, interpreter: calm{},
		clock: clock.RealClock{}, changed: func(*Observed) {}, synced: func(schema.GroupVersionKind) {},
		retry: make(chan struct{}, 1), anew: make(chan struct{}, 1), recheck: newRecheckQueue(calm{}, clock.RealClock{}),
		wrote: map[types.NamespacedName]write{}, late: map[types.NamespacedName]*Observed{},
	}
}

// calm is an interpreter to which all is well.
type calm struct{}

func (calm) ReflectStatus(*unstructured.Unstructured) (*runtime.RawExtension, error) { return nil, nil }
func (calm) Health(*unstructured.Unstructured) (workv1alpha1.ResourceHealth, error) {
	return workv1alpha1.ResourceHealthy, nil
}

// rash is one that does not expect what it meets.
type rash struct{ calm }

func (rash) Health(*unstructured.Unstructured) (workv1alpha1.ResourceHealth, error) {
	var none map[string]string
	none["a"] = "b"
	return workv1alpha1.ResourceHealthy, nil
}

func TestAKindThatIsListedAsServedButIsNotIsNotAskedForAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{ships.Resource: "ShipList"})
		var lists atomic.Int32
		client.PrependReactor("list", "ships", func(clienttesting.Action) (bool, runtime.Object, error) {
			if lists.Add(1) > 100 {
				return true, nil, apierrors.NewInternalError(errors.New("asked for all the time"))
			}
			return true, nil, apierrors.NewNotFound(ships.Resource.GroupResource(), "")
		})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		newWatch(client, func(context.Context, schema.GroupVersionKind) (Kind, error) { return ships, nil }).run(ctx)
		if got := lists.Load(); got > 10 {
			t.Errorf("asked %d times in 30 seconds", got)
		}
	})
}

func TestAnOwnWriteThatTheWatchHasGoneBeyondIsNotKept(t *testing.T) {
	w := newWatch(nil, nil)
	w.current = &entry{}
	at := func(version string) *Observed {
		return &Observed{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one", ResourceVersion: version}}
	}
	var got []int
	w.note(at("7")) // the watch has shown nothing yet
	got = append(got, len(w.wrote))
	w.report(w.current, at("7"))
	got = append(got, len(w.wrote))
	w.report(w.current, at("9")) // gone again, before the answer to the write is read
	w.note(at("8"))
	got = append(got, len(w.wrote))
	w.note(at("10"))
	got = append(got, len(w.wrote))
	if diff := cmp.Diff([]int{1, 0, 0, 1}, got); diff != "" {
		t.Errorf("own writes kept (-want +got):\n%s", diff)
	}
}

func TestAnObjectThatCannotBeReadHidesNoOther(t *testing.T) {
	object := func(fields map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Ship", "metadata": map[string]any{
			"name": "one", "uid": "u",
			"managedFields": []any{map[string]any{"manager": ownership.FieldManager, "operation": "Apply", "fieldsV1": fields}},
		}}}
	}
	cases := map[string]struct {
		interpreter Interpreter
		fields      map[string]any
	}{
		"fields that make no sense":       {calm{}, map[string]any{"nonsense": map[string]any{}}},
		"an interpreter that did not see": {rash{}, map[string]any{"f:kind": map[string]any{}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWatch(nil, nil)
			w.interpreter = tc.interpreter
			got, err := w.transform(object(tc.fields))
			if err != nil {
				t.Fatal(err)
			}
			observed, ok := got.(*Observed)
			if !ok || observed.Name != "one" || observed.UID != "u" || observed.Health != workv1alpha1.ResourceUnknown {
				t.Errorf("kept %+v", got)
			}
		})
	}
}

// TestTheWorkThatAnObjectNoLongerNamesIsReported: whoever takes the name off has
// changed what is that Work's. Another Work of the cluster has taken it over.
func TestTheWorkThatAnObjectNoLongerNamesIsReported(t *testing.T) {
	annotations := func(namespace, name string) map[string]string {
		return map[string]string{workv1alpha2.WorkNamespaceAnnotation: namespace, workv1alpha2.WorkNameAnnotation: name}
	}
	for name, tc := range map[string]struct {
		becomes map[string]string
		want    []string
	}{
		"it names none":                  {nil, []string{"karmada-es-eu-1/one", "/"}},
		"it names one of elsewhere":      {annotations("karmada-es-eu-2", "one"), []string{"karmada-es-eu-1/one", "karmada-es-eu-2/one"}},
		"it names another one of theirs": {annotations("karmada-es-eu-1", "two"), []string{"karmada-es-eu-1/two"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				obj := ship("one")
				obj.SetAnnotations(annotations("karmada-es-eu-1", "one"))
				w, _ := fleetOf(ctx, &oracle{}, obj)
				synctest.Wait()
				var reported []string
				w.changed = func(o *Observed) { reported = append(reported, o.Work.String()) }
				obj = obj.DeepCopy()
				obj.SetAnnotations(tc.becomes)
				obj.SetResourceVersion("2")
				if _, err := w.client.Resource(ships.Resource).Namespace("sea").Update(ctx, obj, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if diff := cmp.Diff(tc.want, reported); diff != "" {
					t.Errorf("told (-want +got):\n%s", diff)
				}
			})
		})
	}
}
