// The page of one workload: as every page, and with charts.

import { Charts } from './charts.js';
import { Live } from './live.js';
import { copying } from './copy.js';
import * as times from './times.js';

const charts = new Charts(document.body.dataset.api);
const live = new Live(() => charts.update());
// Another time range is another address of the same page.
addEventListener('popstate', () => live.draw());
copying(document);
times.show();
charts.update();
live.start();
