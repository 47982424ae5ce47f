// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider/ec2"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider/pricefile"
)

// pricesEvery is how often the price file is looked at; a kubelet takes up to a minute to bring a changed ConfigMap.
const pricesEvery = 5 * time.Second

// loadPrices reads the price file at start: then a fault in it ends the program, as any fault of the configuration does.
func loadPrices(path string) (*pricefile.File, error) {
	if path == "" {
		return nil, nil
	}
	f, err := pricefile.Load(path)
	if err != nil {
		return nil, fmt.Errorf("priceFile: %w", err)
	}
	return f, nil
}

// watchPrices puts every later version of the file in force. One that cannot be used changes nothing, and is said once.
func watchPrices(ctx context.Context, path string, first *pricefile.File, cloud *ec2.Provider) {
	logger := klog.FromContext(ctx)
	pricefile.Watch(ctx, path, first, pricesEvery, func(f *pricefile.File, err error) {
		if err != nil {
			logger.Error(err, "The price file cannot be used; its last good content stays in force")
			return
		}
		cloud.SetPrices(f)
		logger.Info("Price file in force", "file", path, "rules", f.Rules())
	})
}
