package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// askElsewhere is how long the request may take that checks whether a server is a control plane.
const askElsewhere = 5 * time.Second

// Elsewhere returns an error if f leads to a server that answers and is no control plane, because it does not
// serve clusters. If the server is not ready, the error says that it may serve them later. Elsewhere returns nil
// for a control plane, and if it is not known.
func Elsewhere(ctx context.Context, f *Flags) error {
	cfg, err := f.getter("", askElsewhere).ToRESTConfig()
	if err != nil {
		return nil
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil
	}
	err = kinds.RESTClient().Get().AbsPath("/apis/" + clusterv1alpha1.GroupVersion.String()).MaxRetries(0).Do(ctx).Error()
	if !apierrors.IsNotFound(err) {
		return nil
	}
	code := 0
	kinds.RESTClient().Get().AbsPath("/readyz").MaxRetries(0).Do(ctx).StatusCode(&code)
	if code >= http.StatusInternalServerError {
		return fmt.Errorf("%s is not ready, and serves no clusters so far, as a control plane that is starting: try again in some seconds", cfg.Host)
	}
	return fmt.Errorf("%s is no control plane of a fleet, but another Kubernetes API: --kubeconfig or $KUBECONFIG names the file that leads to the control plane", cfg.Host)
}

// HeedElsewhere makes all commands below cmd, if they fail, return Elsewhere's error if there is one: answers
// of a server that is no control plane have nothing to do with the fleet.
func HeedElsewhere(f *Flags, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		HeedElsewhere(f, sub)
	}
	run := cmd.RunE
	if run == nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		var unheard *url.Error
		if err == nil || !f.heard.Load() || errors.As(err, &unheard) || cmd.Context().Err() != nil {
			return err
		}
		if elsewhere := Elsewhere(cmd.Context(), f); elsewhere != nil {
			return elsewhere
		}
		return err
	}
}

// hearing records that the configured server has answered.
type hearing struct {
	next  http.RoundTripper
	flags *Flags
}

// WrappedRoundTripper gives access to the TLS settings of the wrapped transport.
func (h *hearing) WrappedRoundTripper() http.RoundTripper { return h.next }

// RoundTrip sends a request.
func (h *hearing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := h.next.RoundTrip(req)
	if err == nil {
		h.flags.heard.Store(true)
	}
	return resp, err
}
