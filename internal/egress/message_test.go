package egress_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/flotilla-io/flotilla/internal/egress"
)

func TestShown(t *testing.T) {
	patch := func(err error) error {
		return &url.Error{Op: "Patch", URL: "https://127.0.0.1:34903/apis/apps/v1/namespaces/shop/deployments/web?fieldManager=flotilla", Err: err}
	}
	refused := patch(&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 34903}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"no error":                     {nil, ""},
		"no request":                   {errors.New("shop is full"), "shop is full"},
		"a request":                    {refused, "connection refused"},
		"one that is wrapped":          {fmt.Errorf("apply Deployment shop/web: %w", refused), "apply Deployment shop/web: connection refused"},
		"several":                      {utilerrors.NewAggregate([]error{fmt.Errorf("web: %w", refused), fmt.Errorf("api: %w", patch(context.DeadlineExceeded)), errors.New("no")}), "[web: connection refused, api: context deadline exceeded, no]"},
		"several that are joined":      {errors.Join(refused, patch(context.Canceled)), "connection refused\ncontext canceled"},
		"what has no words of our own": {patch(errors.New("a proxy said no")), "a proxy said no"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := egress.Message(tc.err); got != tc.want {
				t.Errorf("told %q, want %q", got, tc.want)
			}
		})
	}
}
