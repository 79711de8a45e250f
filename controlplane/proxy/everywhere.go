package proxy

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// allClusters is the name by which all clusters are asked at once.
	allClusters = "*"
	// askedAtOnce is how many clusters one request asks side by side.
	askedAtOnce = 16
	// askTimeout is how long one cluster may take to answer.
	askTimeout = 20 * time.Second
	// mostAnswer bounds what one cluster answers with, mostAnswers what all do, in
	// bytes.
	mostAnswer  = 32 << 20
	mostAnswers = 128 << 20
)

// everywhere carries requests for all clusters.
type everywhere struct{ *Proxy }

// serve answers one: a list is that of all clusters, an object is that of the one
// that has it, and what is no resource is the hub's.
func (p everywhere) serve(w http.ResponseWriter, req *http.Request, answer Responder) {
	path, err := memberPath(req.URL, allClusters)
	if err != nil {
		answer.Error(badRequest(allClusters, err))
		return
	}
	info, err := resourceOf(req, path)
	if err != nil {
		answer.Error(badRequest(allClusters, err))
		return
	}
	switch {
	case !info.IsResourceRequest:
		p.hub(w, req, path, answer)
	case info.Name != "":
		p.one(w, req, path, info, answer)
	case info.Verb == "list":
		p.list(w, req, path, answer)
	default:
		resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
		answer.Error(apierrors.NewMethodNotSupported(resource, info.Verb+" in all clusters at once"))
	}
}

// resourceOf reads what a path means to a cluster.
func resourceOf(req *http.Request, path string) (*genericapirequest.RequestInfo, error) {
	meant, err := http.NewRequestWithContext(req.Context(), req.Method, "https://member"+path+"?"+queryOf(req), nil)
	if err != nil {
		return nil, fmt.Errorf("the path cannot be read: %w", err)
	}
	factory := genericapirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := factory.NewRequestInfo(meant)
	if err != nil {
		return nil, fmt.Errorf("the path cannot be read: %w", err)
	}
	return info, nil
}

// one carries a request for an object to the cluster that has it.
func (p everywhere) one(w http.ResponseWriter, req *http.Request, path string, info *genericapirequest.RequestInfo, answer Responder) {
	object := path
	if info.Subresource != "" {
		object, _, _ = strings.Cut(path, "/"+info.Name+"/"+info.Subresource)
		object += "/" + info.Name
	}
	answers, err := p.ask(req, object, "", func(*http.Response) ([]byte, error) { return nil, nil })
	if err != nil {
		answer.Error(err)
		return
	}
	found := slices.DeleteFunc(answers, func(a memberReply) bool { return a.code != http.StatusOK })
	resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	switch len(found) {
	case 0:
		answer.Error(apierrors.NewNotFound(resource, info.Name))
		return
	case 1:
	default:
		answer.Error(apierrors.NewConflict(resource, info.Name, fmt.Errorf("conflict resource, exist in more than one cluster: %s; name one of them", clusterNames(found))))
		return
	}
	t, err := p.trip(req.Context(), found[0].cluster, req.Header)
	if err != nil {
		answer.Error(err)
		return
	}
	p.carry(w, req, t, path, answer)
}

func clusterNames(answers []memberReply) string {
	names := make([]string, len(answers))
	for i := range answers {
		names[i] = answers[i].cluster
	}
	return strings.Join(names, ", ")
}

// memberReply is what a cluster answered.
type memberReply struct {
	cluster string
	code    int
	body    []byte
	err     error
}

// ask sends a GET to all clusters, side by side, and returns what they answered,
// in the order of their names. It errs where no cluster may be asked.
func (p everywhere) ask(req *http.Request, path, query string, read func(*http.Response) ([]byte, error)) ([]memberReply, error) {
	user, _ := genericapirequest.UserFrom(req.Context())
	if _, err := callerOf(user); err != nil {
		return nil, status(allClusters, http.StatusForbidden, metav1.StatusReasonForbidden, "%v", err)
	}
	names, err := p.opts.Clusters(req.Context())
	if err != nil {
		return nil, status(allClusters, http.StatusInternalServerError, metav1.StatusReasonInternalError, "list them: %v", err)
	}
	var (
		mu  sync.Mutex
		out []memberReply
	)
	group := errgroup.Group{}
	group.SetLimit(askedAtOnce)
	for _, name := range names {
		group.Go(func() error {
			answer := p.askOne(req, name, path, query, read)
			mu.Lock()
			defer mu.Unlock()
			out = append(out, answer)
			return nil // what one cluster lacks, others may have
		})
	}
	_ = group.Wait()
	slices.SortFunc(out, func(a, b memberReply) int { return cmp.Compare(a.cluster, b.cluster) })
	return out, nil
}

// askOne sends a GET to one cluster, as the caller.
func (p everywhere) askOne(req *http.Request, name, path, query string, read func(*http.Response) ([]byte, error)) memberReply {
	out := memberReply{cluster: name}
	ctx, cancel := context.WithTimeout(req.Context(), askTimeout)
	defer cancel()
	t, err := p.trip(ctx, name, http.Header{})
	if err != nil {
		out.err = err
		return out
	}
	ctx, done, ok := t.link.traffic.begin(ctx)
	defer done()
	if !ok {
		out.err = unavailable(name, "too many requests to it are under way")
		return out
	}
	resp, err := t.get(ctx, path, query, req.Header.Get("Accept"))
	if err != nil {
		t.link.doubt()
		out.err = explain(name, err)
		return out
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusUnauthorized {
		p.refused(t.link)
	}
	out.code = resp.StatusCode
	if out.code == http.StatusOK {
		out.body, out.err = read(resp)
	}
	return out
}

// get asks the member of a trip for something, as the caller.
func (t trip) get(ctx context.Context, path, query, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.link.base.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask: %w", err)
	}
	req.URL = t.location(path, query)
	req.Header.Set("Accept", "application/json")
	if strings.Contains(accept, "as=Table") {
		req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	}
	req.Header.Set("User-Agent", userAgent)
	t.caller.introduce(req.Header, t.creds.impersonator)
	return t.link.plain.RoundTrip(req)
}

// budget is how much all clusters may still answer with.
type budget struct {
	mu   sync.Mutex
	left int64
}

// read reads an answer, if that fits.
func (b *budget) read(resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(counted{resp.Body, b}, mostAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if len(body) > mostAnswer {
		return nil, errTooMuch
	}
	return body, nil
}

// take reports whether n bytes more fit.
func (b *budget) take(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= int64(n)
	return b.left >= 0
}

// counted is read on account of a budget.
type counted struct {
	from   io.Reader
	budget *budget
}

// Read implements io.Reader.
func (c counted) Read(into []byte) (int, error) {
	n, err := c.from.Read(into)
	if !c.budget.take(n) {
		return 0, errTooMuch
	}
	return n, err
}
