package overview

import (
	"context"
	"strings"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/unsent"
)

// withUnsent adds notes on what in Alerts and Providers has no effect. Who may not read them, and a control plane without them,
// has none.
func withUnsent(ctx context.Context, hub client.Reader, within client.ListOption, fleet situation.Fleet) (situation.Fleet, error) {
	var alerts unsent.Alerts
	for _, read := range []func() error{
		listing.Each(ctx, hub, &notificationv1beta3.AlertList{}, alerts.Alert, within),
		listing.Each(ctx, hub, &notificationv1beta3.ProviderList{}, alerts.Provider, within),
	} {
		err := read()
		if alerts.Blind = err != nil; err != nil && !apierrors.IsForbidden(err) && !apimeta.IsNoMatchError(err) {
			return situation.Fleet{}, err
		}
	}
	for _, c := range alerts.Causes() {
		fleet.Notes = append(fleet.Notes, situation.Note{
			Kind: c.Kind, Namespace: c.Namespace, Name: c.Name, Message: c.Path + ": " + c.Message,
			Next: "correct it: flotilla edit " + strings.ToLower(c.Kind) + " " + c.Name + " -n " + c.Namespace,
		})
	}
	return fleet, nil
}
