package housekeeping

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	testingclock "k8s.io/utils/clock/testing"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// answers is a server that has other kinds each time.
type answers struct {
	discovery.ServerResourcesInterface
	lists [][]*metav1.APIResourceList
	errs  []error
}

func (a *answers) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	list, err := a.lists[0], a.errs[0]
	a.lists, a.errs = a.lists[1:], a.errs[1:]
	return list, err
}

// TestKindsReportWhatIsGone: a kind is gone once a whole answer lacks it.
func TestKindsReportWhatIsGone(t *testing.T) {
	core := &metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods"}}}
	of := func(version string) *metav1.APIResourceList {
		return &metav1.APIResourceList{GroupVersion: "example.com/" + version, APIResources: []metav1.APIResource{{Name: "widgets"}}}
	}
	cases := map[string]struct {
		lists [][]*metav1.APIResourceList
		errs  []error
		want  []schema.GroupVersionResource
	}{
		"it stays":                          {lists: [][]*metav1.APIResourceList{{core, of("v1")}, {core, of("v1")}}},
		"it goes":                           {lists: [][]*metav1.APIResourceList{{core, of("v1")}, {core}}, want: []schema.GroupVersionResource{widgets}},
		"another version is preferred":      {lists: [][]*metav1.APIResourceList{{core, of("v1")}, {core, of("v2")}}, want: []schema.GroupVersionResource{widgets}},
		"its group does not answer":         {lists: [][]*metav1.APIResourceList{{core, of("v1")}, {core}}, errs: []error{nil, &discovery.ErrGroupDiscoveryFailed{}}},
		"it is gone when the group answers": {lists: [][]*metav1.APIResourceList{{core, of("v1")}, {core}, {core}}, errs: []error{nil, &discovery.ErrGroupDiscoveryFailed{}, nil}, want: []schema.GroupVersionResource{widgets}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.errs == nil {
				tc.errs = make([]error, len(tc.lists))
			}
			var gone []schema.GroupVersionResource
			clock := testingclock.NewFakePassiveClock(time.Unix(1_000_000, 0))
			k := newKinds(&answers{lists: tc.lists, errs: tc.errs}, clock, func(r schema.GroupVersionResource) { gone = append(gone, r) })
			for range tc.lists {
				_, _ = k.ServerPreferredResources() // an answer that is not whole is an answer
				clock.SetTime(clock.Now().Add(kindsMaxAge))
			}
			if diff := cmp.Diff(tc.want, gone); diff != "" {
				t.Errorf("gone (-want +got):\n%s", diff)
			}
		})
	}
}

// running is a factory that says until when it runs.
type running struct {
	metadatainformer.SharedInformerFactory
	runs int
}

func (r *running) ForResource(schema.GroupVersionResource) informers.GenericInformer { return nil }

func (r *running) Start(stop <-chan struct{}) {
	r.runs++
	go func() {
		<-stop
		r.runs--
	}()
}

// TestWatchesLetGo: what is followed of a kind ends with the kind, or with the server, and
// begins anew when the kind comes back.
func TestWatchesLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*running
		w := newWatches(nil, func() metadatainformer.SharedInformerFactory {
			made = append(made, &running{})
			return made[len(made)-1]
		})
		state := func() []int {
			synctest.Wait()
			out := make([]int, len(made))
			for i := range made {
				out[i] = made[i].runs
			}
			return out
		}
		stop := make(chan struct{})
		follow := func(resource schema.GroupVersionResource) {
			if _, err := w.ForResource(resource); err != nil {
				t.Fatal(err)
			}
			w.Start(stop)
		}
		for _, step := range []struct {
			what string
			do   func()
			want []int
		}{
			{"two kinds", func() { follow(widgets); follow(schema.GroupVersionResource{Version: "v1", Resource: "pods"}) }, []int{1, 1}},
			{"one is asked for again", func() { follow(widgets) }, []int{1, 1}},
			{"one goes", func() { w.forget(widgets) }, []int{0, 1}},
			{"one goes that nobody followed", func() { w.forget(widgets) }, []int{0, 1}},
			{"it comes back", func() { follow(widgets) }, []int{0, 1, 1}},
			{"the server ends", func() { close(stop) }, []int{0, 0, 0}},
		} {
			step.do()
			if diff := cmp.Diff(step.want, state()); diff != "" {
				t.Errorf("%s: how many run of each (-want +got):\n%s", step.what, diff)
			}
		}
	})
}
