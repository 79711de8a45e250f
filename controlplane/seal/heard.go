package seal

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flotilla-io/flotilla/internal/tenure"
)

// listening is long enough for whoever leads to renew his Lease, and for another one
// to take over from him before.
const listening = 2 * tenure.LeaseDuration

// Heard listens to the Lease that whoever leads the control plane renews by the clock of
// his machine, and returns the first time for which far says yes; false if there is none
// for a while. A Lease that nobody renews says nothing.
func (v *Vault) Heard(ctx context.Context, far func(time.Time) bool) (at time.Time, found bool, err error) {
	while, cancel := context.WithTimeout(ctx, v.listen)
	defer cancel()
	for answer := range v.client.Watch(clientv3.WithRequireLeader(while), v.lease, clientv3.WithFilterDelete()) {
		if err := answer.Err(); err != nil && while.Err() == nil {
			return time.Time{}, false, fmt.Errorf("listen to who leads through the store at %s: %w", strings.Join(v.client.Endpoints(), ", "), err)
		}
		for _, event := range answer.Events {
			if at, ok := renewed(event.Kv.Value); ok && far(at) {
				return at, true, nil
			}
		}
	}
	return time.Time{}, false, ctx.Err()
}

// renewed is when a Lease was renewed, as it is kept in the store.
func renewed(content []byte) (at time.Time, ok bool) {
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(content, nil, nil)
	lease, isLease := obj.(*coordinationv1.Lease)
	if err != nil || !isLease || lease.Spec.RenewTime == nil {
		return time.Time{}, false
	}
	return lease.Spec.RenewTime.Time, true
}
