package metrics

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/skiperrors"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// TestReasons: why a Work is tried again is counted by a small set of reasons, whatever error a cluster returns.
func TestReasons(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	cases := map[string]struct {
		err  error
		want string
	}{
		"the cluster has to prove itself":        {&waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnProof}, Err: errors.New("no")}, "Proof"},
		"there is a hold":                        {errors.Join(&skiperrors.Held{Verb: skiperrors.Make, Title: "Deployment web"}), "Held"},
		"an object is being deleted":             {&skiperrors.Terminating{Title: "Deployment web"}, "Terminating"},
		"the cluster does not serve the kind":    {fmt.Errorf("send: %w", members.ErrNotServed), "NotServed"},
		"the cluster does not let us":            {apierrors.NewForbidden(deployments, "web", errors.New("no")), "Forbidden"},
		"the cluster does not take the manifest": {apierrors.NewBadRequest("no"), "Invalid"},
		"somebody else was faster":               {apierrors.NewConflict(deployments, "web", errors.New("no")), "Conflict"},
		"anything else":                          {errors.New("connection refused"), ""},
		"nothing":                                {nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if e := loop.As(Reasoned(tc.err), ""); e != nil {
				got = e.Reason
			}
			if got != tc.want {
				t.Errorf("reason = %q, want %q", got, tc.want)
			}
		})
	}
}
