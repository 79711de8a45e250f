package member

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	defaultBindAddress = "127.0.0.1"
	defaultNodes       = 3
	nodeMaskSize       = 25 // 126 addresses for at most 110 pods
)

// ErrInvalid says that an option cannot be used; the message names it.
var ErrInvalid = errors.New("invalid option")

// Options say which member to run.
type Options struct {
	// Name is the member's name, a DNS label. It is also the context in its kubeconfig.
	Name string
	// DataDir keeps everything; it is made when missing and belongs to one running member.
	DataDir string
	// BindAddress is the IP address to listen on. Empty means 127.0.0.1.
	BindAddress string
	// SecurePort is the port of the API server. 0 means the one of the last run, or a free one.
	SecurePort int
	// Nodes is how many nodes there are at least. 0 means 3; nodes of an earlier run stay.
	Nodes int
	// Node is what each node has to give.
	Node Capacity
	// ServiceCIDR and PodCIDR are the IPv4 ranges of Services and pods. Empty means those of the last run, or some
	// that follow from the name, so that members differ. Node number n has the n-th /25 of PodCIDR.
	ServiceCIDR, PodCIDR string
	// Starting is called once, when the data directory is held and nothing is started yet. nil is not called.
	Starting func()
	// Ready is called once, when nodes are ready and workloads can be created. nil is not called.
	Ready func(Endpoint)
}

// Capacity is what one node has to give, as Kubernetes quantities. Empty means 32 CPUs, 128Gi, 110 pods.
type Capacity struct{ CPU, Memory, Pods string }

// Endpoint is where a running member can be reached.
type Endpoint struct {
	// Server is the URL of the API server.
	Server string
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
}

func (o *Options) complete() error {
	if o.BindAddress == "" {
		o.BindAddress = defaultBindAddress
	}
	if o.Nodes == 0 {
		o.Nodes = defaultNodes
	}
	o.Node.complete()
	if problems := validation.IsDNS1123Label(o.Name); len(problems) > 0 {
		return fmt.Errorf("%w: name %q: %s", ErrInvalid, o.Name, strings.Join(problems, ", "))
	}
	if o.DataDir == "" {
		return fmt.Errorf("%w: a data directory is needed", ErrInvalid)
	}
	if _, err := netip.ParseAddr(o.BindAddress); err != nil {
		return fmt.Errorf("%w: bind address %q is not an IP address", ErrInvalid, o.BindAddress)
	}
	if o.SecurePort < 0 || o.SecurePort > 65535 {
		return fmt.Errorf("%w: port %d is not within 0 and 65535", ErrInvalid, o.SecurePort)
	}
	if o.Nodes < 1 {
		return fmt.Errorf("%w: %d nodes are less than one", ErrInvalid, o.Nodes)
	}
	return o.Node.validate()
}

// host is the address by which clients on this machine reach the bind address.
func (o *Options) host() string {
	if ip := net.ParseIP(o.BindAddress); ip != nil && ip.IsUnspecified() {
		return defaultBindAddress
	}
	return o.BindAddress
}
