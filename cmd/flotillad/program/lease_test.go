package program

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

// TestLosingTheLeaseStopsTheLoopsAlone takes the lease from running loops, for a while.
func TestLosingTheLeaseStopsTheLoopsAlone(t *testing.T) {
	env := servertest.New(t)
	loops := loopOptions{}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	loops.addFlags(flags)
	if err := loops.validate(nil); err != nil {
		t.Fatal(err)
	}
	loops.dataDir, loops.leaderElect, loops.log = t.TempDir(), true, logr.Discard()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- loops.run(ctx, env.Config) }()

	// epochs is how many have begun, once there are so many.
	epochs := func(want int32) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
			select {
			case err := <-done:
				done <- err
				t.Fatalf("the loops ended: %v", err)
			default:
			}
			epoch := &coordinationv1.Lease{}
			err := env.Hub.Get(ctx, client.ObjectKey{Namespace: tenure.Namespace, Name: tenure.EpochName}, epoch)
			return ptr.Deref(epoch.Spec.LeaseTransitions, 0) == want, client.IgnoreNotFound(err)
		})
		if err != nil {
			t.Fatalf("epoch %d: %v", want, err)
		}
	}
	epochs(1)
	taken := []byte(`{"spec":{"holderIdentity":"somebody else","leaseDurationSeconds":1}}`)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: tenure.Namespace, Name: tenure.LeaseName}}
	if err := env.Hub.Patch(t.Context(), lease, client.RawPatch("application/merge-patch+json", taken)); err != nil {
		t.Fatal(err)
	}
	epochs(2) // the loops run again, in the same process
	stop()
	if err := <-done; err != nil {
		t.Errorf("the loops ended with %v", err)
	}
	if err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil || ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
		t.Errorf("the lease was not given up: %v, %v", err, lease.Spec)
	}
}
