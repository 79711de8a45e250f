// Command registry serves the registry of the CNCF for the tests of sources/ocirepository, as its own program would by the same file: over TLS,
// to who has a password. Of the ways to store and to authenticate it links those that the tests use.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
)

func main() {
	if len(os.Args) != 3 || os.Args[1] != "serve" {
		fmt.Fprintln(os.Stderr, "usage: registry serve FILE")
		os.Exit(2)
	}
	if err := run(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file string) error {
	text, err := os.Open(file)
	if err != nil {
		return err
	}
	config, err := configuration.Parse(text)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: config.HTTP.Addr, Handler: handlers.NewApp(context.Background(), config), ReadHeaderTimeout: time.Minute}
	return server.ListenAndServeTLS(config.HTTP.TLS.Certificate, config.HTTP.TLS.Key)
}
