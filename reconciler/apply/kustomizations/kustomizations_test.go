package kustomizations

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/flotilla-io/flotilla/api/scheme"
)

func TestWhatIsGoneIsNotReadFromOwnWrites(t *testing.T) {
	own := New(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", ResourceVersion: "7"}}
	found := func() bool {
		_, found, err := own.Read(t.Context(), client.ObjectKeyFromObject(ks))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	own.written.Wrote(ks)
	if !found() {
		t.Error("what was just written is not there")
	}
	if !own.Endings().Delete(event.DeleteEvent{Object: ks}) {
		t.Error("an end is not looked into")
	}
	if found() {
		t.Error("what is gone is still there")
	}
}
