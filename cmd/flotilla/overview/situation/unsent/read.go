package unsent

import (
	"context"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
)

// Read reads the Alerts of a control plane, or a namespace, and what belongs to them. Who may not read them, and a control plane
// without them, has none.
func Read(ctx context.Context, hub client.Reader, within client.ListOption) (*Alerts, error) {
	a := &Alerts{}
	for _, read := range []func() error{
		listing.Each(ctx, hub, &notificationv1beta3.AlertList{}, a.Alert, within),
		listing.Each(ctx, hub, &notificationv1beta3.ProviderList{}, a.Provider, within),
	} {
		err := read()
		if a.Blind = err != nil; err != nil && !apierrors.IsForbidden(err) && !apimeta.IsNoMatchError(err) {
			return nil, err
		}
	}
	if len(a.alerts) == 0 {
		return a, nil
	}
	err := listing.Each(ctx, hub, &corev1.EventList{}, a.Event, within, client.MatchingFields{"involvedObject.kind": notificationv1beta3.AlertKind})()
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	return a, nil
}
