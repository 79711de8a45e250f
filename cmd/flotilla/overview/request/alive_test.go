package request

import (
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestAWaitSaysThatItGoesOn: what Pods report is said once it is known, and else that the wait goes on: often on a terminal,
// and seldom in a pipe.
func TestAWaitSaysThatItGoesOn(t *testing.T) {
	const says = "◎ Deployment/shop/web in west: ErrImagePull: web:2: not found"
	still := func(seconds int) string {
		return fmt.Sprintf("◎ still waiting after %s", time.Duration(seconds)*time.Second)
	}
	for name, tc := range map[string]struct {
		quiet  time.Duration
		reason int // when Pods report something, in seconds; 0 for never
		phase  int // when the Kustomization reports something
		want   []string
	}{
		"on a terminal":                  {quietTerminal, 0, 0, []string{still(10), still(20), still(30), still(40)}},
		"in a pipe":                      {quietPipe, 0, 0, []string{still(30)}},
		"the Kustomization says more":    {quietPipe, 0, 14, []string{"◎ Running health checks"}},
		"its Pods say what is wrong":     {quietPipe, 4, 0, []string{says, still(40)}},
		"they say it late":               {quietPipe, 32, 0, []string{still(30), says}},
		"they say it, and all are alive": {quietTerminal, 12, 0, []string{still(10), says, still(30), still(40)}},
	} {
		t.Run(name, func(t *testing.T) {
			ks := kustomization("web", metav1.ConditionUnknown, "Progressing", "Running health checks")
			ks.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: "shop_web__Service", Version: "v1"}, {ID: "shop_web_apps_Deployment", Version: "v1"}}}
			of := map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "one"}
			binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", Labels: of}}
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west", Name: "web", Labels: of, Generation: 2}}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(binding, work).Build()
			now, out := clocktesting.NewFakeClock(time.Unix(0, 0)), &strings.Builder{}
			w := &waiting{requester: &requester{hub: hub, clock: now, out: out, quiet: tc.quiet}, what: kustomizations, obj: ks, seen: ks}
			for second := 0; second <= 42; second += 2 {
				if second == tc.reason && second > 0 {
					work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkPodsReady, Status: metav1.ConditionFalse, Message: "ErrImagePull: web:2: not found", ObservedGeneration: 2}}
					if err := hub.Update(t.Context(), work); err != nil {
						t.Fatal(err)
					}
				}
				if second == tc.phase && second > 0 {
					if _, err := w.judge(t.Context(), ks); err != nil {
						t.Fatal(err)
					}
				}
				w.alive(t.Context())
				now.Step(2 * time.Second)
			}
			if diff := cmp.Diff(tc.want, strings.Split(strings.TrimSpace(out.String()), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
