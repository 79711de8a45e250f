package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/contexts"
)

// Describe explains an error of the control plane to the user, with what to do. It returns nil
// for nil, and unknown errors unchanged.
func Describe(err error) error { return DescribeOf(Hub, err) }

// DescribeOf is Describe for any server, by name: a member behind the control plane, or, for ""
// and Hub, the control plane.
func DescribeOf(server string, err error) error {
	if server == "" {
		server = Hub
	}
	var several utilerrors.Aggregate
	if errors.As(err, &several) {
		var all []error
		for _, e := range utilerrors.Flatten(several).Errors() {
			all = append(all, describe(server, e))
		}
		return errors.Join(all...)
	}
	return describe(server, err)
}

func describe(server string, err error) error {
	var request *url.Error
	var network net.Error
	var file *fs.PathError
	var refused *proxyError
	var nothing *meta.NoResourceMatchError
	var unknown *contexts.UnknownError
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case clientcmd.IsEmptyConfig(err):
		return fmt.Errorf("no control plane is known%s: --kubeconfig names the file that leads to it", named(os.Getenv("KUBECONFIG")))
	case errors.As(err, &unknown):
		return err
	case strings.Contains(err.Error(), unreadable): // has no type
		return fmt.Errorf("%w; this is no kubeconfig: --kubeconfig names another file that leads to the control plane", err)
	case errors.As(err, &file):
		return fmt.Errorf("find the control plane: %w; --kubeconfig names the file that leads to it", err)
	case errors.As(err, &refused):
		return refused.describe()
	case IsUnknownKind(err):
		return unknownKindOf(server, strings.Trim(strings.TrimPrefix(err.Error(), unknownKind), ` "`))
	case Absent(err) != "":
		return fmt.Errorf("%w: flotilla get %s%s lists what there is", &apierrors.StatusError{ErrStatus: statusOf(err)}, Absent(err), at(server))
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the control plane does not accept these credentials (%w): --kubeconfig names a file with others", err)
	case lacksRight(err):
		return fmt.Errorf("%w: ask for the right to do it", err)
	case errors.As(err, &nothing) && nothing.PartialResource.Version == "":
		return unknownKindOf(server, nothing.PartialResource.Resource)
	case meta.IsNoMatchError(err) && server != Hub:
		return fmt.Errorf("cluster %s does not serve it (%w): flotilla api-resources -C %[1]s lists what it serves", server, err)
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the control plane does not serve it (%w): is this the control plane of a fleet, and is the CustomResourceDefinition there?", err)
	case errors.As(err, &request) && request.Timeout() && memberOf(request.URL) != "":
		return fmt.Errorf("cluster %s does not answer in time: flotilla describe cluster %[1]s says how it is", memberOf(request.URL))
	case errors.As(err, &request) && hostOf(request.URL) == nowhere:
		return fmt.Errorf("no control plane is known%s, and none answers at %s: --kubeconfig names the file that leads to it", named(os.Getenv("KUBECONFIG")), nowhere)
	case errors.As(err, &request):
		return fmt.Errorf("no control plane answers at %s: %w; see whether flotillad serve runs there, or --kubeconfig names the file that leads elsewhere", hostOf(request.URL), request.Err)
	case errors.As(err, &network):
		return fmt.Errorf("no control plane answers: %w", err)
	default:
		return err
	}
}

// unreadable begins client-go's error about an invalid kubeconfig.
const unreadable = "error loading config file"

// lacksRight reports whether a server refused something because the user lacks a right.
// Protected objects and exceeded quotas lead to the same code for every user, with a message
// that explains itself.
func lacksRight(err error) bool {
	return apierrors.IsForbidden(err) && authorizer.MatchString(err.Error())
}

// authorizer matches an API server's message about a missing right.
var authorizer = regexp.MustCompile(`User "[^"]*" cannot \S+ (resource|path) "`)

// named returns a note that none of the files in $KUBECONFIG exists, which client-go treats
// like no configuration at all; empty if one exists, or if the list is empty.
func named(list string) string {
	if list == "" {
		return ""
	}
	for _, file := range filepath.SplitList(list) {
		if _, err := os.Stat(file); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return ""
		}
	}
	return ", since there is no file " + list + ", which $KUBECONFIG names"
}

// nowhere is the server that kubectl tries without any kubeconfig.
const nowhere = "http://localhost:8080"

// Completed classifies an error of kubectl's Complete: errors of a server or a kubeconfig are
// failures, all others are wrong usage.
func Completed(err error) error { return CompletedOf(Hub, err) }

// CompletedOf is Completed for any server, by name.
func CompletedOf(server string, err error) error {
	if err == nil {
		return nil
	}
	var printer genericclioptions.NoCompatiblePrinterError
	if errors.As(err, &printer) {
		return command.Output(ptr.Deref(printer.OutputFormat, ""), slices.Sorted(slices.Values(printer.AllowedFormats))...)
	}
	var status apierrors.APIStatus
	var request *url.Error
	var network net.Error
	var partly *discovery.ErrGroupDiscoveryFailed
	var unknown *contexts.UnknownError
	if errors.As(err, &status) || errors.As(err, &request) || errors.As(err, &network) || errors.As(err, &partly) ||
		errors.Is(err, context.Canceled) || meta.IsNoMatchError(err) || clientcmd.IsEmptyConfig(err) || clientcmd.IsConfigurationInvalid(err) || errors.As(err, &unknown) ||
		strings.Contains(err.Error(), unreadable) { // has no type
		return DescribeOf(server, err)
	}
	return command.Usage(err)
}

// UnknownKind returns an error that the control plane has no kind of this name.
func UnknownKind(word string) error { return unknownKindOf(Hub, word) }

func unknownKindOf(server, word string) error {
	if server == Hub {
		return fmt.Errorf("the control plane knows no kind %q: flotilla api-resources lists them", word)
	}
	return fmt.Errorf("cluster %s knows no kind %q: flotilla api-resources%s lists them", server, word, at(server))
}

// at returns the flag, after a space, that selects a server; empty for the control plane.
func at(server string) string {
	if server == Hub {
		return ""
	}
	return " -C " + server
}

// unknownKind begins kubectl's error about an unknown kind, which has no type.
const unknownKind = "the server doesn't have a resource type"

// IsUnknownKind reports whether kubectl found that a server knows no such kind.
func IsUnknownKind(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), unknownKind)
}

// statusOf returns a server's Status.
func statusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return metav1.Status{}
	}
	return status.Status()
}

// memberOf returns the member of a URL of the control plane's proxy; empty if it is no such URL.
func memberOf(address string) string {
	_, rest, found := strings.Cut(address, "/apis/"+clusterv1alpha1.GroupVersion.String()+"/clusters/")
	name, _, proxy := strings.Cut(rest, "/proxy")
	if !found || !proxy || strings.Contains(name, "/") {
		return ""
	}
	return name
}

// hostOf returns the scheme and host of a URL, without the path, which does not help users.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return strings.SplitN(address, "?", 2)[0]
	}
	return u.Scheme + "://" + u.Host
}
