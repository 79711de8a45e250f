package inspection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// watchPause is the pause before the next request to a server that ends watches at once.
const watchPause = time.Second

// watch prints changes on every server until the user interrupts it.
func (g *getter) watch(ctx context.Context) error {
	servers, err := g.scope.Servers(ctx, g.fleet)
	if err != nil {
		return err
	}
	if len(servers) == 0 {
		return errors.New("there is no cluster to watch: flotilla join and flotilla register add some")
	}
	show := &watchPrinter{get: g, members: !g.scope.HubOnly(), out: printers.GetNewTabWriter(g.Out), tables: map[string][]metav1.TableColumnDefinition{}}
	var group sync.WaitGroup
	answers := make([]fleet.Answer[found], len(servers))
	for i, server := range servers {
		answers[i].Cluster = server
		group.Go(func() {
			answers[i].Value, answers[i].Err = g.watchServer(ctx, server, show)
			if err := answers[i].Err; err != nil && len(servers) > 1 && ctx.Err() == nil {
				show.warn(server, err)
			}
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := answers[0].Err; err != nil && g.scope.HubOnly() {
		return described(g.fleet, fleet.Hub, err)
	}
	return report(g.fleet, &g.scope, io.Discard, answers)
}

// watchServer prints the objects on one server, and then changes.
func (g *getter) watchServer(ctx context.Context, server string, show *watchPrinter) (found, error) {
	var f found
	last := ""
	for first := true; ; first = false {
		var listed *listed
		err := fleet.Until(ctx, func() (err error) {
			listed, err = g.list(server)
			return err
		})
		if isAbsent(err) && first {
			if !g.IgnoreNotFound {
				f.absent = append(f.absent, err)
			}
			return f, nil
		}
		if err != nil {
			return f, err
		}
		show.mapping(listed.mapping)
		if first && !g.WatchOnly {
			for _, obj := range listed.objects {
				if err := show.print(server, watch.Event{Type: watch.Added, Object: obj}); err != nil {
					return f, err
				}
			}
		}
		if !first && listed.version == last {
			listed.version = "" // the version is too old: begin with the current state
		}
		last = listed.version
		if err := g.follow(ctx, server, listed.version, show); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return f, err
		}
		// The server no longer has the events since then: begin again with the current state.
	}
}

// listed is the list with which a watch begins.
type listed struct {
	mapping *meta.RESTMapping
	objects []runtime.Object
	version string
}

func (g *getter) list(server string) (*listed, error) {
	r := g.build(g.fleet.Server(server, fleet.Timeout).NewBuilder(), g.ChunkSize).SingleResourceType().Do()
	obj, err := r.Object()
	if err != nil {
		return nil, err
	}
	l := &listed{objects: []runtime.Object{obj}}
	if l.mapping, err = r.ResourceMapping(); err != nil {
		return nil, err
	}
	if meta.IsListType(obj) {
		if l.objects, err = meta.ExtractList(obj); err != nil {
			return nil, err
		}
	}
	l.version, err = meta.NewAccessor().ResourceVersion(obj)
	return l, err
}

// follow prints changes after version. If a server ends a watch regularly, it starts the next one.
func (g *getter) follow(ctx context.Context, server, version string, show *watchPrinter) error {
	for {
		var events watch.Interface
		err := fleet.Until(ctx, func() (err error) {
			events, err = g.build(g.fleet.Server(server, 0).NewBuilder(), g.ChunkSize).SingleResourceType().Do().Watch(version)
			return err
		})
		if err != nil {
			return err
		}
		next, err := g.consume(ctx, server, events, show)
		events.Stop()
		if err != nil {
			return err
		}
		if next != "" {
			version = next
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchPause):
		}
	}
}

// consume prints the events of one watch. It returns the last version that was seen.
func (g *getter) consume(ctx context.Context, server string, events watch.Interface, show *watchPrinter) (version string, err error) {
	for {
		select {
		case <-ctx.Done():
			return version, ctx.Err()
		case event, ok := <-events.ResultChan():
			if !ok {
				return version, nil
			}
			if event.Type == watch.Error {
				return version, apierrors.FromObject(event.Object)
			}
			if v, err := meta.NewAccessor().ResourceVersion(event.Object); err == nil && v != "" {
				version = v
			}
			if event.Type == watch.Bookmark {
				continue
			}
			if err := show.print(server, event); err != nil {
				return version, err
			}
		}
	}
}

// watchPrinter prints the events of all servers as they come.
type watchPrinter struct {
	get     *getter
	members bool
	out     interface {
		io.Writer
		Flush() error
	}

	mutex   sync.Mutex
	printer printers.ResourcePrinterFunc
	fault   error
	sheet   *sheet
	tables  map[string][]metav1.TableColumnDefinition // the columns that a server sent last
}

// mapping sets the watched kind. Only the first call has an effect.
func (p *watchPrinter) mapping(mapping *meta.RESTMapping) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.sheet != nil {
		return
	}
	p.sheet = newSheet(p.members)
	p.printer, p.fault = p.get.ToPrinter(mapping, nil, p.get.AllNamespaces, false)
}

func (p *watchPrinter) print(server string, event watch.Event) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.fault != nil {
		return p.fault
	}
	obj, err := p.shown(server, event.Object)
	if err != nil {
		return err
	}
	if p.get.OutputWatchEvents {
		obj = &metav1.WatchEvent{Type: string(event.Type), Object: runtime.RawExtension{Object: obj}}
	}
	if err := p.printer.PrintObj(obj, p.out); err != nil {
		return fmt.Errorf("show what changed: %w", err)
	}
	return p.out.Flush()
}

// shown returns the object as it is printed: as a row for people, or else with the name of its
// server.
func (p *watchPrinter) shown(server string, obj runtime.Object) (runtime.Object, error) {
	if !p.get.IsHumanReadablePrinter {
		list := &unstructured.UnstructuredList{}
		if err := appendFrom(list, server, obj); err != nil {
			return nil, err
		}
		if len(list.Items) != 1 {
			return nil, fmt.Errorf("%s answers with %d objects in one event", server, len(list.Items))
		}
		return &list.Items[0], nil
	}
	table, err := tableOf(obj, time.Now())
	if err != nil {
		return nil, err
	}
	// Servers send the column definitions only once per watch.
	if len(table.ColumnDefinitions) > 0 {
		p.tables[server] = table.ColumnDefinitions
	}
	table.ColumnDefinitions = p.tables[server]
	p.sheet.add(server, table)
	return p.sheet.table(), nil
}

func (p *watchPrinter) warn(server string, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	warn(p.get.ErrOut, server, err)
}
