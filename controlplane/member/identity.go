package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/flotilla-io/flotilla/controlplane/datadir"
)

// identity is what a member must find again when it is started on the same folder.
type identity struct {
	Name        string `json:"name"`
	SecurePort  int    `json:"securePort"`
	ServiceCIDR string `json:"serviceCIDR"`
	PodCIDR     string `json:"podCIDR"`

	file string
	pods netip.Prefix
}

// loadIdentity reads the identity in the folder and lets the options complete or change it. A folder of a member
// with another name, or with other ranges, is refused: its objects hold both.
func loadIdentity(dir *datadir.Dir, opts Options) (*identity, error) {
	id := &identity{file: dir.Path("member.json")}
	content, err := os.ReadFile(id.file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		pods, services := rangesOf(opts.Name)
		id.Name, id.PodCIDR, id.ServiceCIDR = opts.Name, pods.String(), services.String()
		id.PodCIDR, id.ServiceCIDR = orElse(opts.PodCIDR, id.PodCIDR), orElse(opts.ServiceCIDR, id.ServiceCIDR)
	case err != nil:
		return nil, fmt.Errorf("read identity: %w", err)
	default:
		if err := json.Unmarshal(content, id); err != nil {
			return nil, fmt.Errorf("read identity %s: %w", id.file, err)
		}
	}
	if err := id.agree(opts); err != nil {
		return nil, err
	}
	if opts.SecurePort != 0 {
		id.SecurePort = opts.SecurePort
	}
	if id.pods, err = parseRange("pod range", id.PodCIDR, nodeMaskSize); err != nil {
		return nil, err
	}
	if _, err := nodeRange(id.pods, opts.Nodes-1); err != nil {
		return nil, err
	}
	services, err := parseRange("service range", id.ServiceCIDR, 28)
	if err != nil {
		return nil, err
	}
	if services.Overlaps(id.pods) {
		return nil, fmt.Errorf("%w: the pod range %s and the service range %s overlap", ErrInvalid, id.pods, services)
	}
	return id, nil
}

func (id *identity) agree(opts Options) error {
	for _, each := range []struct{ what, have, want string }{
		{"name", id.Name, opts.Name},
		{"service range", id.ServiceCIDR, opts.ServiceCIDR},
		{"pod range", id.PodCIDR, opts.PodCIDR},
	} {
		if each.want != "" && each.want != each.have {
			return fmt.Errorf("%w: %s %q: the data directory belongs to a member with %q", ErrInvalid, each.what, each.want, each.have)
		}
	}
	return nil
}

func (id *identity) save() error {
	content, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	_, err = datadir.WriteFile(id.file, append(content, '\n'))
	return err
}

func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}
