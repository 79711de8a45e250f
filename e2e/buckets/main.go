// Command buckets is a real server of S3 for the whole-system tests, and a client to fill it:
//
//	buckets serve HOST:PORT DIR          a server with a bucket for each folder of DIR
//	buckets change HOST:PORT BUCKET      puts objects there, as it reads them: {"key": "content"}, and null for one that goes
//
// The keys are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and the region of both is in AWS_REGION.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

var (
	access, secret, region = os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_REGION")

	errUsage = errors.New("usage: buckets serve HOST:PORT DIR | buckets change HOST:PORT BUCKET")
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "buckets:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 3 && args[0] == "serve":
		return serve(ctx, args[1], args[2])
	case len(args) == 3 && args[0] == "change":
		return change(ctx, args[1], args[2])
	default:
		return errUsage
	}
}

// serve keeps what servers note of objects beside them, as not every file system has room for that.
func serve(ctx context.Context, address, dir string) error {
	buckets, notes := filepath.Join(dir, "buckets"), filepath.Join(dir, "notes")
	if err := errors.Join(os.MkdirAll(buckets, 0o755), os.MkdirAll(notes, 0o755)); err != nil {
		return err
	}
	side, err := meta.NewSideCar(notes)
	if err != nil {
		return err
	}
	backend, err := posix.New(buckets, side, posix.PosixOpts{SideCarDir: notes})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
		RootUserAccess: access, RootUserSecret: secret, Region: region, Ports: []string{address}, Quiet: true, KeepAlive: true,
		MaxConnections: 256, MaxRequests: 128, MultipartMaxParts: 10_000,
	})
}

func change(ctx context.Context, address, bucket string) error {
	var objects map[string]*string
	if err := json.NewDecoder(os.Stdin).Decode(&objects); err != nil {
		return err
	}
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String("http://" + address), UsePathStyle: true, Region: region,
		Credentials: credentials.NewStaticCredentialsProvider(access, secret, ""),
	})
	for key, content := range objects {
		var err error
		if content == nil {
			_, err = client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
		} else {
			_, err = client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(*content)})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}
